"""The table of glu_modes.py from its records, for docs/engines.md.

    python asv_bench/device/glu_report.py [--into docs/engines.md] asv_bench/records/glu/*.jsonl

Of several records of the same case and variant the last counts. With --into, what stands between the marks
``<!-- glu: begin -->`` and ``<!-- glu: end -->`` is replaced; else the text is printed.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

from pages import by_variant, deliver, markdown, origin, records_of
from targets import PUBLISHED

BEGIN, END = "<!-- glu: begin -->", "<!-- glu: end -->"
MODES = ("cluster", "batch", "pipeline")


def milliseconds(record):
    return f"{1e3 * record['refactor_s']:.3f}" if record else "-"


def text(paths):
    """A row a case."""
    records = records_of(paths)
    found = by_variant(records)
    header = ["case", "GLU 3.0", *(f"{mode} only" for mode in MODES), "the model's choice", "ratio", "predicted"]
    rows = []
    for case, variants in found.items():
        published, choice = PUBLISHED["glu"].get(case), variants["choice"]
        row = [case, f"{published:g}" if published else "-", *(milliseconds(variants.get(mode)) for mode in MODES)]
        row += [milliseconds(choice), f"{published / choice['refactor_s'] / 1e3:.0f}" if published else "-"]
        row += [f"{1e3 * choice['predicted_s']:.3f}" if choice["predicted_s"] else "-"]
        row += [milliseconds(variants.get(dtype)) for dtype in ("float32", "complex128")]
        row += [f"{choice['phases']} + {choice['levels']}", f"{choice['backward_error']:.0e}"]
        rows.append(row)
    table = markdown([*header, "float32", "complex128", "phases + levels", "backward error"], rows)
    return f"{origin(records)}\n\n{table}"


if __name__ == "__main__":
    deliver(text, BEGIN, END, __doc__.splitlines()[0])
