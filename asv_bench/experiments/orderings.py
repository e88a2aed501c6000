"""Minimum degree compared with SuiteSparse's, nested dissection with 1 and 2 threads compared with METIS's.

Both get the same graph of A + A^T, whose construction is not timed, and alternate. Records also have the entries of the
Cholesky factor (`lnz`, `peer_lnz`), flops and levels of the elimination tree of both.
"""

from functools import partial

from .. import internals, peers, records
from ..matrices import MATRICES, load, real
from ..options import measured, present
from ..timing import interleaved

NESTED = (
    *("G3_circuit", "ibmpg1t_mna_tran", "ibmpg2t_mna_tran", "ibmpg2t_spd_tran", "rlc:700x700", "poisson:1000x1000"),
    *("poisson:80x80x80", "elast:40x40x40", "cotlap_armadillo", "anemometer1_A1", "case_ACTIVSg10k_nrjac"),
    *("memplus", "bcsstk18"),
)
CASES = ()
PEERS, BUDGET = ("amd", "metis"), 0.0
MOST_ENTRIES = 4e7  # of all repeats of minimum degree together


def add_arguments(parser):
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="of nested dissection")


def ours(peer, ptr, ind, threads):
    """What to measure beside a peer: functions that return a permutation, by name."""
    if peer == "amd":
        return {"amd": lambda: internals.minimum_degree(ptr, ind)}
    return {f"nd, threads: {n}": lambda n=n: internals.nested_dissection(ptr, ind, threads=n) for n in threads}


def compare(case, peer, arguments):
    """The records of a case."""
    ptr, ind = internals.graph_of(load(case))
    here = ours(peer, ptr, ind, arguments.threads)
    order = peers.named(peer).order
    repeat = arguments.repeat if peer == "metis" else max(3, min(arguments.repeat, int(MOST_ENTRIES / ind.size)))
    *seconds, there = interleaved([*here.values(), lambda: order(ptr, ind)], repeat)
    costs = [internals.ordering_cost(ptr, ind, perm) for perm in (next(iter(here.values()))(), order(ptr, ind))]
    more = {"n": len(ptr) - 1, "nnz": int(ind.size)}
    for side, cost in zip(("", "peer_"), costs, strict=True):
        more |= {f"{side}{name}": float(value) for name, value in zip(("lnz", "flops", "levels"), cost, strict=True)}
    for name, took in zip(here, seconds, strict=True):
        yield records.make(case, "cpu", "order", took, peer, there, variant=name, **more)


def run(arguments):
    internals.set_num_threads(max(arguments.threads))
    for peer in [name for name in present(arguments) if name in peers.ORDERINGS]:
        known = (MATRICES / "INDEX.csv").exists()
        default = NESTED if peer == "metis" else [*(real(False) + real(True) if known else ())]
        compared = partial(compare, peer=peer, arguments=arguments)
        yield from measured(arguments, arguments.cases or default, compared)
