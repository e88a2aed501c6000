"""The table of crisscross over division points, microseconds."""

from .tables import geomean, markdown, us

HEADERS = ["case", "none", "solve", "best", "takes", "ratio", "chosen", "columns", "U12, S", "LU of S", "takes"]
HEADERS += ["predicted", "ratio", "solve"]
BEST = slice(3, 6)  # columns that say nothing where only the chosen division was measured


def results(records):
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


def tables(records):
    """A row a case and ordering."""
    found, chosen = results(records)
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
