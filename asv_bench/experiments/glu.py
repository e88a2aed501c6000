"""Each mode of the glu engine: refactorization with the model's choice, and with one mode only.

Seconds of a replay of the graph between CUDA events: in double precision with the model's choice ("choice"), with each
mode only and with other constants of the model of pipelines (microseconds of a column, of an update), and in float32
and complex128. Records of the choice also have the prediction, the phases of subtrees, the levels after them and the
backward error of a solve. "pipeline" leaves columns that do not fit into shared memory to the model's levels.
"""

import numpy as np

import gpusplu as gs

from .. import internals, records
from ..matrices import load
from ..options import device_clock, measured, note
from ..phases import attempt

CASES = (
    *("add20", "rajat19", "adder_dcop_05", "memplus", "case3375wp_nrjac", "case_ACTIVSg10k_nrjac", "bayer10"),
    *("ibmpg1t_mna_tran", "faer_matrix_n19168", "ibmpg2t_mna_tran"),
)
PEERS, BUDGET = (), 0.03
COSTS = ((0.3, 5000), (0.45, 4000), (0.35, 4000), (0.45, 3000), (0.6, 3000), (0.45, 5500))  # us; updates in a us
# What is forced, constants and dtype by name.
VARIANTS = {
    "choice": (None, {}, "d"),
    **{mode: (mode, {}, "d") for mode in internals.GLU_MODES},
    **{f"{column}, 1/{updates}": (None, {"column": column, "update": 1 / updates}, "d") for column, updates in COSTS},
    "float32": (None, {}, "f"),
    "complex128": (None, {}, "D"),
}


def add_arguments(parser):
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS), metavar="VARIANT")


def measure(A, variant, clock):
    """Seconds of a refactorization, and what is known of one variant."""
    mode, costs, dtype = VARIANTS[variant]
    A = A.astype(np.result_type(A.dtype, dtype) if dtype == "D" else np.dtype(dtype))
    with internals.tuned("glu", mode=mode, costs=costs):
        factor = gs.splu(A, engine="glu")
        factor.refactor(A.data)
        factor.solve(np.ones(A.shape[0], A.dtype))
        seconds = internals.graph_seconds(factor, clock, internals.GRAPHS["refactor"])
    return seconds, factor.backward_error, internals.glu_choice(factor)


def run(arguments):
    clock = device_clock(arguments)
    yield from measured(arguments, arguments.cases, lambda case: of_case(case, arguments.variants, clock))


def of_case(case, variants, clock):
    """A record of every variant that can run."""
    A = load(case)
    for variant in variants:
        found = attempt(lambda variant=variant: measure(A, variant, clock))
        if isinstance(found, dict):
            note(f"{case}: {variant}: {found['error']}")
            continue
        seconds, error, more = found
        more |= {"variant": variant, "refactor_s": seconds}
        yield records.make(case, "glu", "refactor", seconds, backward_error=error, **more)
