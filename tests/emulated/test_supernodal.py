"""The supernodal GPU engine from end to end on an emulated device: everything but the hardware."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.engines.supernodal import memory as front_memory
from gpusplu.engines.supernodal.plan import make_plan
from support.emulated_device import memory_at
from support.small_matrices import EPS, canonical, phased, random_matrix, rhs, spd_matrix
from support.solves import check_solves

LU = {
    "random": lambda dtype: random_matrix(60, dtype),
    "circuit": lambda dtype: phased(gallery.named("circuit:9x9"), dtype),
    "poisson": lambda dtype: phased(gallery.poisson(12, 11), dtype),
    "one": lambda dtype: canonical(sp.csc_array([[2.0]])).astype(dtype),
}
CHOLESKY = {
    "random": lambda dtype: spd_matrix(50, dtype),
    "poisson": lambda dtype: phased(gallery.poisson(12, 11), dtype, hermitian=True),
    "elasticity": lambda dtype: phased(gallery.elasticity(3, 2, 2), dtype, hermitian=True),
}
CASES = [(gs.splu, name, make) for name, make in LU.items()] + [
    (gs.cholesky, name, make) for name, make in CHOLESKY.items()
]
SEVERAL = ((), (1,), (3,))  # right-hand sides


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("make", "name", "matrix"), CASES, ids=lambda value: getattr(value, "__name__", str(value)))
def test_factor_solve_refactor(device, make, name, matrix, dtype):
    A = matrix(dtype)
    factor = make(A, engine="supernodal")
    assert factor.engine == "supernodal"
    check_solves(A, factor, SEVERAL)
    scaled = A.copy()
    scaled.data *= 3
    factor.refactor(scaled.data)
    check_solves(scaled, factor)
    stats = factor.stats
    assert stats.n_refactor == 1
    assert stats.n_repivoted == 0
    assert stats.nnz_factor >= A.nnz / 2


# Limits of the classes of fronts that put small matrices into every phase.
PHASES = {
    "block": {"warp_rows": 4, "small_rows": 0, "block_rows": 240},
    "small": {"warp_rows": 4, "small_rows": 16, "block_rows": 240},
    "large": {"warp_rows": 0, "block_rows": -1},
    "mixed": {"warp_rows": 4, "small_rows": 8, "block_rows": 12},
}


@pytest.mark.parametrize("dtype", "dF")
@pytest.mark.parametrize("phases", PHASES)
@pytest.mark.parametrize(
    ("make", "matrix"), [(gs.splu, LU["poisson"]), (gs.cholesky, CHOLESKY["poisson"])], ids=["lu", "cholesky"]
)
def test_every_phase(device, monkeypatch, make, matrix, phases, dtype):
    def planned(cores, *arguments):
        return cores[0], make_plan(cores[0], *arguments, **PHASES[phases]), [0.0] * len(cores)

    monkeypatch.setattr(front_memory, "make_best_plan", planned)
    A = matrix(dtype)
    check_solves(A, make(A, engine="supernodal"), SEVERAL)


@pytest.mark.parametrize("make", [gs.splu, gs.cholesky])
def test_numbers_of_columns_in_turn(device, monkeypatch, make):
    """Solves leave counters and packets as the next one needs them, for any number of groups."""

    def planned(cores, *arguments):
        return cores[0], make_plan(cores[0], *arguments, **PHASES["mixed"]), [0.0] * len(cores)

    monkeypatch.setattr(front_memory, "make_best_plan", planned)
    device.seed = 3
    A = LU["poisson"]("d") if make is gs.splu else CHOLESKY["poisson"]("d")
    factor, b = make(A, engine="supernodal", refine="never"), rhs(A.shape[0], A.dtype, (18,))
    for count in (18, 3, 9, 1, 17, 2):
        for trans, op in (("N", A), ("T", A.T)):
            assert backward_error(op, factor.solve(b[:, :count], trans), b[:, :count]) < 100 * EPS["d"]


def test_every_solve_has_a_tag_of_its_own(device):
    """Else values that fronts handed to each other in the solve before pass for new ones."""
    arrow = np.eye(5)
    arrow[-1], arrow[:, -1] = 1, 1
    large = canonical(sp.csc_array(np.kron(arrow, np.ones((200, 200))) + 3000 * np.eye(1000)))
    for A, only_large in ((large, True), (CHOLESKY["poisson"]("d"), False)):
        factor = gs.cholesky(A, engine="supernodal", refine="never")
        recorded = factor._core._recorded
        assert (np.asarray(recorded.program.plan.phase) == 3).all() == only_large
        for k in range(1, 4):
            b = rhs(A.shape[0], A.dtype, ())
            assert backward_error(A, factor.solve(b), b) < 100 * EPS["d"]
            counters = memory_at(recorded.buffers.vectors(1).own["counters"].pointer, 32).view(np.uint32)
            assert counters[0] == k  # SOLVES of solve.cuh
