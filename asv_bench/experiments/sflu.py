"""Variants of the sflu engine: waiting or levels, groups of columns, blocks for long columns.

Seconds of a refactorization and of a solve between CUDA events around replays of their graphs, of the default engine
("groups") and without the features that VARIANTS names. Factors must have the same bits (`same`), except those of
"warps", which sums long columns in another order. Plans with more than 2e8 multiply-adds are left out except for
ibmpg2t_mna_tran, and so are, without --variants, single columns of matrices with more than 1e5.
"""

import gpusplu as gs

from .. import internals, records
from ..matrices import load
from ..options import device_clock, measured, note
from ..suites import circuits

CASES = [case for case in circuits.CASES if case not in ("rlc:300x300", "rlc:700x700")]
PEERS, BUDGET = (), 0.02
VARIANTS = {
    "groups": {},
    "levels": {"by_levels": True},
    "columns": {"grouped": False},
    "columns_levels": {"grouped": False, "by_levels": True},
    "warps": {"splits": False},
}
MOST_COLUMNS = 100_000  # that are groups by themselves


def add_arguments(parser):
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), metavar="VARIANT")


def of_case(case, variants, clock):
    """A record of every variant."""
    factor = gs.splu(load(case), engine="sflu")
    n, levels, flops = internals.column_size(factor)
    if 2 * flops > circuits.COLUMN_FLOPS and case not in circuits.PUBLISHED:
        note(f"{case}: left out, {flops:.1e} multiply-adds")
        return
    first = None
    for name in variants or [name for name in VARIANTS if n <= MOST_COLUMNS or not name.startswith("columns")]:
        found, result = internals.sflu_variant(factor, VARIANTS[name], clock)
        first = first or result
        found |= {"variant": name, "n": n, "levels": levels, "same": result == first}
        if not found["same"] and name != "warps":
            note(f"{case}: {name} has other bits")
        yield records.make(case, "sflu", "variants", found["refactor_s"], backward_error=found["error"], **found)


def run(arguments):
    clock = device_clock(arguments)
    yield from measured(arguments, arguments.cases, lambda case: of_case(case, arguments.variants, clock))
