"""The table of the modes of glu, milliseconds of a refactorization."""

from .tables import by_variant, markdown, number
from .targets import PUBLISHED

MODES = ("cluster", "batch", "pipeline")


def milliseconds(record):
    return f"{1e3 * record['refactor_s']:.3f}" if record else "-"


def tables(records):
    """A row a case; and constants of the model of pipelines, where they were varied."""
    found = by_variant(records)
    header = ["case", "GLU 3.0", *(f"{mode} only" for mode in MODES), "the model's choice", "ratio", "predicted"]
    rows = []
    for case, variants in found.items():
        published, choice = PUBLISHED["glu"].get(case), variants["choice"]
        row = [case, f"{published:g}" if published else "-", *(milliseconds(variants.get(mode)) for mode in MODES)]
        row += [milliseconds(choice), f"{published / choice['refactor_s'] / 1e3:.0f}" if published else "-"]
        row += [f"{1e3 * choice['predicted_s']:.3f}" if choice["predicted_s"] else "-"]
        row += [milliseconds(variants.get(dtype)) for dtype in ("float32", "complex128")]
        rows.append([*row, f"{choice['phases']} + {choice['levels']}", number(choice["backward_error"], ".0e")])
    header += ["float32", "complex128", "phases + levels", "backward error"]
    text = "Refactorization in ms: replays of the graph, and GLU 3.0, a synchronization a level, on the same device."
    parts = [text, markdown(header, rows)]
    costs = list(dict.fromkeys(name for variants in found.values() for name in variants if "1/" in name))
    if costs:
        rows = [[case, *(milliseconds(of.get(name)) for name in ("choice", *costs))] for case, of in found.items()]
        parts += ["## Other constants for pipelines", "Microseconds of a column, of an update."]
        parts += [markdown(["case", "choice", *costs], rows)]
    return "\n\n".join(parts)
