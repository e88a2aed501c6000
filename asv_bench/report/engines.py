"""The engines side by side, refactorization + solve, beside the published codes, for cases that column engines take."""

from .tables import geomean, markdown, us
from .targets import PUBLISHED

HEADERS = ["case", "GLU 3.0", "glu", "SFLU", "sflu", "crisscross", "blocked / unblocked", "supernodal"]
ENGINES = ("glu", "sflu", "crisscross", "supernodal")


def complete(entries):
    """Whether every engine was measured on a case."""
    return all("solve" in entries.get(name, {}) for name in ENGINES)


def published(engine, case):
    milliseconds = PUBLISHED[engine].get(case)
    return "-" if milliseconds is None else us(1e-3 * milliseconds)


def table(found):
    """Of seconds by case, solver and phase, as `circuits.results` has them; and the mean of its ratios."""
    rows, ratios = [], []
    for case, entries in found.items():
        if not complete(entries):
            continue
        cells = {name: f"{us(entries[name]['refactor'])} + {us(entries[name]['solve'])}" for name in ENGINES}
        ratios.append(entries["sflu"]["refactor"] / entries["crisscross"]["refactor"])
        columns = [published("glu", case), cells["glu"], published("sflu", case), cells["sflu"], cells["crisscross"]]
        rows.append([case, *columns, f"{ratios[-1]:.2f}", cells["supernodal"]])
    text = "Refactorization + solve in us, published codes: refactorization. Blocked is crisscross, unblocked sflu."
    means = f"Blocked / unblocked: {geomean(ratios):.2f} in geometric mean of {len(ratios)} cases."
    return "\n\n".join([text, markdown(HEADERS, rows), means])
