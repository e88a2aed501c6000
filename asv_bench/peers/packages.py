"""Peers that are Python packages, and gpusplu's own LU."""

from itertools import cycle

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
from scipy.linalg import blas, lapack

import gpusplu as gs

from ..phases import attempt, begun
from ..timing import backward_error, timed
from . import Peer, best_of, numbers_of_threads, with_sums

MOST_ENTRIES, MOST_A_ROW = 3e7, 100  # of supernodal factors, for KLU of rslab


class SuperLU(Peer):
    """SciPy's splu (SuperLU), without a separate analysis or refactorization: refactor is splu again."""

    kinds, parallel, most_flops = (False, True), False, 5e9

    def measure(self, problem):
        A, b = problem.scaled, problem.b
        factor, lu = timed(lambda: scipy.sparse.linalg.splu(A))
        found = {"analyze": None, "factor": factor, "total": factor}
        found["refactor"] = problem.clock.least(lambda: scipy.sparse.linalg.splu(A))
        found["solve"] = problem.clock.least(lambda: lu.solve(b))
        found["step"] = found["refactor"] + found["solve"]
        return found | {"backward_error": backward_error(A, lu.solve(b), b)}


class OwnLU(Peer):
    """LU of gpusplu on the processor, to compare LDL^T with."""

    symmetric = True

    def measure(self, problem):
        found, factor = begun(
            problem,
            lambda: gs.analyze(problem.A, engine="cpu"),
            lambda symbolic: symbolic.factor(problem.A.data),
        )
        clock, b, new = problem.clock, problem.b, problem.scaled.data
        found["refactor"] = clock.least(lambda: factor.refactor(new))
        found["solve"] = clock.least(lambda: factor.solve(b))
        found["step"] = clock.least(lambda: factor.refactor_solve(new, b))
        return found | {
            "backward_error": problem.error(factor.solve),
            "entries": factor.nnz,
            "bytes": factor.stats["bytes"],
        }


class RSLAB(Peer):
    """rslab of PyPI, in Rust: KLU for circuits, supernodal LU and LDL^T, parallel.

    It runs with one thread and with as many as gpusplu has; the better of the two counts for each phase. The method
    with the least total counts for the first phases, the one with the least step for the others: KLU, or LU, or LDL^T
    for definite matrices. LU and LDL^T have no refactorization of their own, so refactor is a factorization. KLU is not
    tried on matrices with large supernodal factors. Symmetric indefinite matrices are factored by LDL^T, which rejects
    saddle points, and by LU.
    """

    package, kinds, symmetric = "rslab", (False, True), True

    def measure(self, problem):
        paths = ("ldlt",) if problem.definite else ("ldlt", "lu") if problem.symmetric else ("lu",)
        tried = [attempt(lambda path=path: rslab_path(problem, path)) for path in paths]
        if not problem.symmetric and tried[0].get("entries", 0) < min(MOST_ENTRIES, MOST_A_ROW * problem.A.shape[0]):
            tried.append(attempt(lambda: rslab_path(problem, "klu")))
        found = [one for one in tried if "error" not in one]
        if not found:
            raise RuntimeError("; ".join(one["error"] for one in tried))
        first, later = (min(found, key=lambda one: one[phase]) for phase in ("total", "step"))
        return later | {phase: first[phase] for phase in ("analyze", "factor", "total")}


def rslab_path(problem, path):
    return best_of(rslab_threads, [(problem, path, threads) for threads in numbers_of_threads(problem)])


def rslab_threads(problem, path, threads):
    """Analysis and first factorization of the first values, the rest of the second: the least of repeats."""
    import rslab

    settings = rslab.KluSettings(parallel=threads > 1) if path == "klu" else rslab.Settings(threads=threads)
    values = [rslab_values(A, path) for A in (problem.A, problem.scaled)]
    found, (symbolic, made) = begun(
        problem,
        lambda: rslab.analyze(problem.A, path, settings=settings),
        lambda symbolic: (symbolic, symbolic.factor(values[0])),
    )
    others = cycle(values)  # new values for each call, because it does nothing for the same ones
    refactor = made.refactor if path == "klu" else symbolic.factor
    found["refactor"] = problem.clock.least(lambda: refactor(next(others)))
    made = refactor(values[1]) or made
    found["solve"] = problem.clock.least(lambda: made.solve(problem.b))
    error = backward_error(problem.scaled, made.solve(problem.b), problem.b)
    return with_sums(found | {"entries": made.factor_nnz, "backward_error": error})


def rslab_values(A, path):
    """The values that a path reads."""
    return (sp.csc_array(sp.tril(A)) if path == "ldlt" else A).data


class Feral(Peer):
    """feral-solver of PyPI, in Rust: LDL^T of symmetric indefinite matrices with certified inertia, parallel.

    It analyzes in its first factorization: analyze is the time of `feral.analyze`, which makes no factor, and factor
    what a first factorization takes beyond that.
    """

    package, symmetric = "feral", True

    def measure(self, problem):
        import feral

        first, second = (lower(feral, A) for A in (problem.A, problem.scaled))
        found, solver = begun(problem, lambda: feral.analyze(first), lambda _: factored(feral, first))
        found["factor"] = max(found["factor"] - found["analyze"], 0.0)
        found["total"] = found["analyze"] + found["factor"]
        found["refactor"] = problem.clock.least(lambda: accepted(feral, solver.refactor(second)))
        found["solve"] = problem.clock.least(lambda: solver.solve(problem.b))
        error = backward_error(problem.scaled, np.asarray(solver.solve(problem.b)), problem.b)
        inertia = f"{solver.inertia.n_pos}, {solver.inertia.n_neg}"
        return with_sums(found | {"entries": solver.factor_nnz, "inertia": inertia, "backward_error": error})


def lower(feral, A):
    return feral.from_scipy(sp.csc_matrix(A), symmetric="full")


def factored(feral, A):
    solver = feral.Solver()
    accepted(feral, solver.factor(A))
    return solver


def accepted(feral, result):
    """Raise unless the first of what a factorization returns is success."""
    if result[0] != feral.FactorStatus.SUCCESS:
        raise RuntimeError(f"feral: {result[0]}")


class METIS(Peer):
    """METIS's nested dissection, through pymetis."""

    package = "pymetis"

    def order(self, ptr, ind):
        import pymetis

        perm, _ = pymetis.nested_dissection(pymetis.CSRAdjacency(ptr.astype(np.int32), ind))
        return np.asarray(perm, np.int32)


class LAPACK(Peer):
    """Dense fronts by SciPy's LAPACK and BLAS: getrf, 2 trsm and gemm; potrf, trsm and syrk or herk."""

    package = "threadpoolctl"

    def front(self, cholesky, dtype):
        """A function that overwrites the blocks of a front: A11, A21, U12^T (LU only), and the rest."""
        letter = {"f": "s", "d": "d", "F": "c", "D": "z"}[np.dtype(dtype).char]
        return (cholesky_front if cholesky else lu_front)(letter)


def lu_front(letter):
    getrf, trsm = getattr(lapack, letter + "getrf"), getattr(blas, letter + "trsm")
    gemm = getattr(blas, letter + "gemm")

    def call(a11, a21, ut, c):
        lu, _, _ = getrf(a11, overwrite_a=1)
        if c.size:
            l21 = trsm(1.0, lu, a21, side=1, overwrite_b=1)
            u12 = trsm(1.0, lu, ut, side=1, lower=1, trans_a=1, diag=1, overwrite_b=1)
            gemm(-1.0, l21, u12, beta=1.0, c=c, trans_b=1, overwrite_c=1)

    return call


def cholesky_front(letter):
    potrf, trsm = getattr(lapack, letter + "potrf"), getattr(blas, letter + "trsm")
    rank_k = getattr(blas, letter + ("herk" if letter in "cz" else "syrk"))

    def call(a11, a21, c):
        factor, _ = potrf(a11, lower=1, overwrite_a=1, clean=0)
        if c.size:
            l21 = trsm(1.0, factor, a21, side=1, lower=1, trans_a=2, overwrite_b=1)
            rank_k(-1.0, l21, beta=1.0, c=c, lower=1, overwrite_c=1)

    return call
