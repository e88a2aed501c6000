"""Crisscross LU with several division points: predicted and measured seconds, blocked and unblocked.

For trailing blocks of several sizes, and last the one that the model chooses: device seconds of the columns before the
division, including those of the trailing block (`sparse_s`), of the whole factorization and of a solve, and both curves
of the model. One trailing block must have 0 columns, which is unblocked like sflu. The experiment crisscross_fit fits
constants to such records.
"""

from functools import partial

import gpusplu as gs

from .. import internals, records
from ..matrices import load
from ..options import device_clock, measured, names, numbers

CASES = ["memplus", "bayer10", "ibmpg1t_mna_tran", "faer_matrix_n19168", "case_ACTIVSg10k_nrjac"]
CASES += ["add20", "adder_dcop_05", "rajat19", "case3375wp_nrjac", "add20_seq", "mem_plus_seq", "smult20_seq"]
CASES += ["voter_seq", "rlc:100x100", "circuit:100x100", "power:150x150", "ibmpg2t_mna_tran"]
PEERS, BUDGET = (), 0.03
SIZES = [0, 16, 48, 96, 128, 168, 256, 512, 768, 1536]


def add_arguments(parser):
    parser.add_argument("--orderings", type=names, default=["auto", "amd"], help="names joined by commas")
    parser.add_argument("--sizes", type=numbers, default=SIZES, help="numbers of columns joined by commas")


def of_case(case, ordering, sizes, clock):
    """A record of every trailing block, the model's last."""
    A = load(case)
    with internals.tuned("crisscross", division=A.shape[0]):
        first = gs.splu(A, engine="crisscross", ordering=ordering)
    chosen = internals.crisscross_variant(first, None, clock)
    fitting = [size for size in sizes if size <= A.shape[0]]
    for row in [*(internals.crisscross_variant(first, size, clock) for size in fitting), chosen]:
        error, more = row["error"], row | {"ordering": ordering}
        yield records.make(case, "crisscross", "division", row["factor_s"], backward_error=error, **more)


def run(arguments):
    clock = device_clock(arguments)
    for ordering in arguments.orderings:
        sweep = partial(of_case, ordering=ordering, sizes=arguments.sizes, clock=clock)
        yield from measured(arguments, arguments.cases, sweep)
