"""Table of crisscross.py from its records, for docs/engines.md.

    python asv_bench/device/crisscross_report.py [--into docs/engines.md] asv_bench/records/crisscross/*.jsonl

Of several records of the same case and corner the last counts. With --into, what stands between the marks
``<!-- crisscross: begin -->`` and ``<!-- crisscross: end -->`` is replaced; else the text is printed.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

from common import geomean
from report import deliver, markdown

BEGIN, END = "<!-- crisscross: begin -->", "<!-- crisscross: end -->"
HEADERS = ["case", "none", "solve", "best corner", "takes", "ratio", "chosen", "columns", "U12, S", "LU of S", "takes"]
HEADERS += ["predicted", "ratio", "solve"]


def results(paths):
    """Records of every case and ordering by corner, the one that the model chose, and where they come from."""
    found, chosen, origins = {}, {}, set()
    for path in paths:
        for record in map(json.loads, path.read_text().splitlines()):
            key = record["case"], record["ordering"]
            found.setdefault(key, {})[record["corner"]] = chosen[key] = record  # the model's is the last
            origins.add((record["commit"], record["date"]))
    return found, chosen, origins


def us(seconds):
    return f"{1e6 * seconds:,.0f}"


def row(case, rows, chosen):
    """Cells of a case, and its ratio of none to the chosen corner."""
    none, best = rows[0], min(rows.values(), key=lambda record: record["factor_s"])
    ratio = none["factor_s"] / chosen["factor_s"]
    parts = [chosen["columns_s"], chosen["sparse_s"] - chosen["columns_s"], chosen["factor_s"] - chosen["sparse_s"]]
    cells = [case, us(none["factor_s"]), us(none["solve_s"]), str(best["corner"]), us(best["factor_s"])]
    cells += [f"{none['factor_s'] / best['factor_s']:.2f}", str(chosen["corner"])]
    cells += [us(max(0.0, part)) for part in parts] if chosen["corner"] else ["-"] * 3
    cells += [us(chosen["factor_s"]), us(chosen["predicted_sparse_s"] + chosen["predicted_dense_s"])]
    return [*cells, f"{ratio:.2f}", us(chosen["solve_s"])], ratio


def text(paths):
    """The table as Markdown."""
    found, chosen, origins = results(paths)
    rows, ratios = [], []
    for (case, ordering), of_case in found.items():
        cells, ratio = row(case if ordering == "auto" else f"{case} {ordering}", of_case, chosen[case, ordering])
        rows.append(cells)
        ratios.append(ratio if chosen[case, ordering]["corner"] else None)
    some = [ratio for ratio in ratios if ratio]
    means = f"Geometric mean of the ratios {geomean([ratio or 1.0 for ratio in ratios]):.2f}"
    means += f", of the {len(some)} cases with a corner {geomean(some):.2f}."
    commits = ", ".join(f"{commit} of {date}" for commit, date in sorted(origins))
    return f"Commit and date: {commits}.\n\n{markdown(HEADERS, rows)}\n\n{means}"


if __name__ == "__main__":
    deliver(text, BEGIN, END, __doc__.splitlines()[0])
