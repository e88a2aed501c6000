"""The engines side by side, refactorization + solve, from records of circuits.py, for docs/engines.md.

    python asv_bench/device/engines_report.py [--into docs/engines.md] asv_bench/records/circuits/*.jsonl

Cases that column engines take, at the commit of the last record. With --into, what stands between the marks
``<!-- engines: begin -->`` and ``<!-- engines: end -->`` is replaced; else the text is printed.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

from circuits_report import results
from common import geomean
from pages import deliver, latest, markdown, origin, records_of
from targets import PUBLISHED

BEGIN, END = "<!-- engines: begin -->", "<!-- engines: end -->"
HEADERS = ["case", "GLU 3.0", "glu", "SFLU", "sflu", "crisscross", "blocked / unblocked", "supernodal"]


def us(seconds):
    return f"{1e6 * seconds:,.0f}"


def published(engine, case):
    milliseconds = PUBLISHED[engine].get(case)
    return "-" if milliseconds is None else us(1e-3 * milliseconds)


def text(paths):
    """The table, and the mean of its ratios."""
    records = latest(records_of(paths))
    rows, ratios = [], []
    for case, found in results(records).items():
        if "sflu" not in found:
            continue
        cells = {name: f"{us(of['refactor'])} + {us(of['solve'])}" for name, of in found.items() if "solve" in of}
        ratios.append(found["sflu"]["refactor"] / found["crisscross"]["refactor"])
        columns = [published("glu", case), cells["glu"], published("sflu", case), cells["sflu"], cells["crisscross"]]
        rows.append([case, *columns, f"{ratios[-1]:.2f}", cells["supernodal"]])
    means = f"Blocked / unblocked: {geomean(ratios):.2f} in geometric mean of {len(ratios)} cases."
    return "\n\n".join([origin(records), markdown(HEADERS, rows), means])


if __name__ == "__main__":
    deliver(text, BEGIN, END, __doc__.splitlines()[0])
