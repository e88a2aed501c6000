"""Tables of the variants of the column engines: modes of glu, variants of sflu, division points of crisscross."""

from .circuits import PUBLISHED
from .tables import by_variant, geomean, markdown, number, us

MODES = ("cluster", "batch", "pipeline")


def milliseconds(record):
    return f"{1e3 * record['refactor_s']:.3f}" if record else "-"


def glu(records):
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


SFLU_HEADERS = {
    "groups": "waiting",
    "levels": "by levels",
    "columns": "columns alone, waiting",
    "columns_levels": "columns alone, by levels",
    "warps": "a warp a column",
}


def compared(found, pairs):
    """A row a case: refactorization and solve of each of `pairs`, and the ratios; geometric means below."""
    header, rows, ratios = ["case"], [], []
    for left, right in pairs:
        header += [SFLU_HEADERS[left], SFLU_HEADERS[right], "ratio"]
    for case, variants in found.items():
        row, ratio = [case], []
        for pair in pairs:
            both = [variants.get(name) for name in pair]
            row += [f"{us(r['refactor_s'])} + {us(r['solve_s'])}" if r else "-" for r in both]
            of_phases = [both[1][phase] / both[0][phase] for phase in ("refactor_s", "solve_s")] if all(both) else []
            row.append(" + ".join(f"{value:.2f}" for value in of_phases) or "-")
            ratio.append(of_phases)
        rows.append(row)
        ratios.append(ratio)
    last = ["geometric mean"]
    for k in range(len(pairs)):
        of_cases = [ratio[k] for ratio in ratios if ratio[k]]
        last += ["", "", " + ".join(f"{geomean(phase):.2f}" for phase in zip(*of_cases, strict=True))]
    return markdown(header, [*rows, last])


def sflu(records):
    """Waiting against levels, and a block for long columns against a warp."""
    found = by_variant(records)
    variants = {name for case in found.values() for name in case}
    parts = ["Refactorization + solve in us, replays of the graphs."]
    if "levels" in variants:
        parts.append(compared(found, [("groups", "levels"), ("columns", "columns_levels")]))
    split = {case: entries for case, entries in found.items() if not entries.get("warps", {"same": True})["same"]}
    if split:
        parts += ["## A block for long columns against a warp", "Other cases have none."]
        parts.append(compared(split, [("groups", "warps")]))
    return "\n\n".join(parts)


HEADERS = ["case", "none", "solve", "best", "takes", "ratio", "chosen", "columns", "U12, S", "LU of S", "takes"]
HEADERS += ["predicted", "ratio", "solve"]
BEST = slice(3, 6)  # columns that say nothing where only the chosen division was measured


def divisions(records):
    """Records of every case and ordering by columns of the trailing block, and the one that the model chose."""
    found, chosen = {}, {}
    for record in records:
        key = record["case"], record["ordering"]
        found.setdefault(key, {})[record["trailing"]] = chosen[key] = record  # the model's is the last
    return found, chosen


def row(case, rows, chosen):
    """Cells of a case, and its ratio of none to the chosen division."""
    none, best = rows[0], min(rows.values(), key=lambda record: record["factor_s"])
    ratio = none["factor_s"] / chosen["factor_s"]
    parts = [chosen["columns_s"], chosen["sparse_s"] - chosen["columns_s"], chosen["factor_s"] - chosen["sparse_s"]]
    cells = [case, us(none["factor_s"]), us(none["solve_s"]), str(best["trailing"]), us(best["factor_s"])]
    cells += [f"{none['factor_s'] / best['factor_s']:.2f}", str(chosen["trailing"])]
    cells += [us(max(0.0, part)) for part in parts] if chosen["trailing"] else ["-"] * 3
    cells += [us(chosen["factor_s"]), us(chosen["predicted_sparse_s"] + chosen["predicted_dense_s"])]
    return [*cells, f"{ratio:.2f}", us(chosen["solve_s"])], ratio


def crisscross(records):
    """A row a case and ordering."""
    found, chosen = divisions(records)
    header, rows, ratios = list(HEADERS), [], []
    for (case, ordering), of_case in found.items():
        cells, ratio = row(case if ordering == "auto" else f"{case} {ordering}", of_case, chosen[case, ordering])
        rows.append(cells)
        ratios.append(ratio if chosen[case, ordering]["trailing"] else None)
    if all(len(of_case) <= 2 for of_case in found.values()):
        for cells in (header, *rows):
            del cells[BEST]
    text = (
        "Refactorization and solve in us, blocked against unblocked (no trailing block: sflu). The block that the\n"
        "model chose, and its parts: columns before the division; U12 and the Schur complement beyond those; the front."
    )
    some = [ratio for ratio in ratios if ratio]
    means = f"Geometric mean of the ratios {geomean([ratio or 1.0 for ratio in ratios]):.2f}"
    means += f", of the {len(some)} cases with a block {geomean(some):.2f}." if some else "."
    return "\n\n".join([text, markdown(header, rows), means])
