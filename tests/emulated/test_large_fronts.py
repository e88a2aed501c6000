"""Kernels of large fronts in the emulator, against the plain factorization of the same plan in plan_reference."""

import numpy as np
import pytest
import scipy.sparse as sp

from gpusplu import gallery
from gpusplu.cuda.layout import arguments, struct
from gpusplu.engines.supernodal.plan import Limits, make_plan
from support import emulated, factor_driver
from support import plan_reference as reference
from support.analyses import analyze
from support.front_plans import Pattern
from support.small_matrices import canonical, dtypes

FILE = "fronts/large_fronts.cu"
TOLERANCE = {"f": 2e-4, "F": 2e-4, "d": 1e-12, "D": 1e-12}


def plan_of(A, cholesky, limits=None, **parameters):
    """A plan in which every front is large."""
    pattern = Pattern(A)
    real = A.data.astype("D" if A.dtype.kind == "c" else "d")
    symbolic = analyze(pattern.ptr, pattern.ind, real, cholesky=cholesky, ordering="auto", method="front")
    return make_plan(symbolic, pattern, A.dtype, limits, **{"warp_rows": 0, "block_rows": -1, **parameters})


class Emulated:
    """Device arrays of one factorization; `run` may be called again and again."""

    def __init__(self, plan, values, tiny=1e-300, **options):
        dtype = values.dtype
        self.plan, self.values = plan, values
        self.factor = np.full(plan.factor_size, np.nan, dtype)
        self.blocks = np.full(plan.block_size, np.nan, dtype)
        self.status = np.zeros((), struct(FILE, "Status"))
        self.counters = np.zeros(plan.large_counters, np.uint32)
        self.library = emulated.compile(FILE, dtype.char, int(plan.cholesky), **options)
        args = self.args = np.zeros((), arguments(FILE)["factor_large"])
        self.arrays = {
            "fronts": plan.front_bytes,
            "large": plan.large_front_bytes,
            "tasks": plan.large_task_bytes,
            "chunk_ptr": plan.large_chunk_ptr,
            "chunks": plan.large_chunk_bytes,
            "place": plan.place,
            "entry_source": plan.entry_source,
            "entry_place": plan.entry_place,
            "values": values,
            "factor": self.factor,
            "blocks": self.blocks,
            "counters": self.counters,
            "status": self.status,
        }
        if plan.entry_scale.size:
            self.arrays["entry_scale"] = plan.entry_scale
        for name, array in self.arrays.items():
            args[name] = array.ctypes.data
        args["task_count"] = len(plan.large_task_bytes) // struct("shared/large_fronts.hpp", "LargeTask").itemsize
        args["tiny"] = tiny

    def run(self, seed=0, grid=3):
        self.status["n_perturbed"] = 0
        launch = self.plan.launches[-1]
        self.library.launch("factor_large", grid, int(launch["threads"]), int(launch["shared_bytes"]), self.args, seed)
        return self


def check(plan, device, values):
    """All that kernels of large fronts write."""
    factor, blocks = reference.factor(plan, values.astype("D" if values.dtype.kind == "c" else "d"), items=False)
    for f in np.flatnonzero(plan.phase == 3):
        got, expected = reference.views(plan, device.factor, f), reference.views(plan, factor, f)
        errors = [reference.largest_error(got[name], expected[name]) for name in expected]
        block, expected = (reference.block_view(plan, b, f) for b in (device.blocks, blocks))
        assert max(*errors, reference.largest_error(block, expected)) <= TOLERANCE[values.dtype.char]


def matrix(case, dtype, cholesky):
    A = CASES[case]().astype("D")
    n = A.shape[0]
    if dtype in "FD":
        turn = sp.diags_array(np.exp(1j * np.arange(n)))
        A = turn @ A @ (turn.conj() if cholesky else turn)
    else:
        A = A.real
    return canonical(A.astype(dtype))


def blocked_spd(n, seed=3):
    """Sparse and positive definite, with separators of odd sizes."""
    A = sp.random_array((n, n), density=0.02, rng=np.random.default_rng(seed))
    return canonical(A @ A.T + 2 * sp.eye_array(n))


def arrow(n):
    A = sp.lil_array((n, n))
    A.setdiag(9.0)
    A[n - 3 :, :] = 0.5
    A[:, n - 3 :] = 0.5
    A.setdiag(9.0)
    return canonical(A.tocsc())


def dense(n):
    rng = np.random.default_rng(n)
    B = rng.standard_normal((n, n))
    return canonical(sp.csc_array(B @ B.T / n + np.eye(n)))


def star(leaves, width, n, touched):
    """Leaves of `width` columns each that are coupled to `touched` columns of a dense part of order n."""
    rng = np.random.default_rng(5)
    A = np.zeros((leaves * width + n,) * 2)
    A[-n:, -n:] = rng.standard_normal((n, n))
    for k in range(leaves):
        own = np.arange(k * width, (k + 1) * width)
        rows = np.concatenate([own, leaves * width + rng.choice(n, touched, replace=False)])
        A[np.ix_(own, rows)] = rng.standard_normal((width, len(rows)))
        A[np.ix_(rows, own)] = A[np.ix_(own, rows)].T
    A += np.diag(np.abs(A).sum(axis=1))
    return canonical(sp.csc_array((A + A.T) / 2))


def with_leaves(A, leaves, width, touched):
    """Every leaf is coupled to some columns of A that are coupled to each other."""
    A, n = A.tocsr(), A.shape[0]
    rng = np.random.default_rng(6)
    B = np.zeros((leaves * width, n))
    for k in range(leaves):
        near = A[[rng.integers(n)]].indices
        B[k * width : (k + 1) * width, rng.choice(near, min(touched, len(near)), replace=False)] = 0.5
    diagonal = sp.diags_array(np.r_[np.full(leaves * width, 2 * touched), abs(B).sum(axis=0)])
    return canonical(sp.block_array([[None, sp.csr_array(B)], [sp.csr_array(B.T), A]]) + diagonal)


CASES = {
    "poisson": lambda: gallery.poisson(13, 11),
    "poisson3": lambda: gallery.poisson(6, 7, 5),
    "arrow": lambda: arrow(70),
    "dense": lambda: dense(150),
    "spd": lambda: blocked_spd(200),
    "star": lambda: star(30, 3, 141, 9),
    "many": lambda: star(90, 2, 131, 6),
    "wide star": lambda: star(3, 67, 201, 90),
    "one": lambda: canonical(sp.csc_array([[2.0]])),
}


@pytest.mark.parametrize("cholesky", [1, 0])
@pytest.mark.parametrize(
    ("case", "dtype"),
    [(c, "d") for c in CASES]
    + [pytest.param(c, t, marks=pytest.mark.thorough) for c in ("poisson3", "many", "wide star") for t in "fFD"],
)
def test_factor(case, dtype, cholesky):
    A = matrix(case, dtype, cholesky)
    plan = plan_of(A, bool(cholesky))
    assert (plan.phase == 3).all()
    device = Emulated(plan, A.data).run()
    check(plan, device, A.data)
    assert device.status["n_perturbed"] == 0
    first = device.factor.tobytes(), device.blocks.tobytes()
    device.run(seed=7)
    assert first == (device.factor.tobytes(), device.blocks.tobytes())


@pytest.mark.parametrize("cholesky", [1, 0])
def test_two_tiles_a_task(cholesky):
    """Of the contribution blocks of wide fronts, on a device that has no use for more tasks."""
    A = with_leaves(star(3, 150, 200, 140), 4, 3, 40)
    plan = plan_of(A, bool(cholesky), Limits(multiprocessors=1))
    assert (plan.large_task_bytes.view(struct("shared/large_fronts.hpp", "LargeTask"))["tiles"] == 2).any()
    check(plan, Emulated(plan, A.data).run(), A.data)


@pytest.mark.parametrize("cholesky", [1, 0])
def test_begun_before_small_fronts_are_done(cholesky):
    """Every launch waits for its own arrivals of small children."""
    A = matrix("poisson3", "d", cholesky)
    plan = plan_of(A, bool(cholesky), warp_rows=8, small_rows=0, block_rows=24)
    small, device = factor_driver.factor(plan, A.data), Emulated(plan, A.data)
    device.factor[:], device.blocks[:] = small.factor, small.blocks
    arrivals = small.arrivals.copy()
    device.args["arrivals"] = arrivals.ctypes.data
    check(plan, device.run(), A.data)
    with pytest.raises(emulated.EmulationError, match="waited too long"):
        device.run()
    device.counters[:4] = 0, 0, 1, 0
    arrivals += small.arrivals
    check(plan, device.run(), A.data)


@pytest.mark.parametrize("cholesky", [1, 0])
@pytest.mark.parametrize("dtype", dtypes("dD"))
def test_small_shared_memory(dtype, cholesky):
    """As on devices before sm_80: fewer stages."""
    A = matrix("wide star", dtype, cholesky)
    plan = plan_of(A, bool(cholesky), Limits(shared_memory_bytes=65536, arch=75))
    assert plan.launches["shared_bytes"].max() <= 65536
    check(plan, Emulated(plan, A.data, defines=("LARGE_SHARED_KB=64",)).run(), A.data)


@pytest.mark.parametrize("dtype", dtypes("dfFD"))
def test_lu_pivots_inside_tiles(dtype):
    """No diagonal entry can be a pivot, and a tile is singular where a column is zero."""
    n = 150
    rng = np.random.default_rng(1)
    B = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if dtype in "FD" else 0)
    np.fill_diagonal(B, 0)
    A = canonical(sp.csc_array(B.astype(dtype)))
    plan = plan_of(A, False)
    device = Emulated(plan, A.data).run()
    assert device.status["n_perturbed"] == 0
    v = reference.views(plan, device.factor, 0)
    D = np.linalg.inv(front_of(plan, A)[: plan.large_tile, : plan.large_tile])
    assert reference.largest_error(v["inverse"][:, : plan.large_tile], D) <= 1e4 * TOLERANCE[dtype]


def front_of(plan, A):
    return A[plan.row_perm][:, plan.col_perm].toarray() * (
        np.outer(plan.row_scale[plan.row_perm], plan.col_scale[plan.col_perm]) if plan.row_scale.size else 1
    )


def test_tiny_pivots_are_counted():
    A = matrix("dense", "d", False)
    plan = plan_of(A, False)
    values = np.zeros_like(A.data)
    device = Emulated(plan, values, tiny=1e-3).run()
    assert device.status["n_perturbed"] == device.status["n_tiny"] + 150 == 150
    assert np.isfinite(reference.views(plan, device.factor, 0)["inverse"]).all()


def test_cholesky_counts_pivots_that_are_not_positive():
    A = matrix("dense", "d", True)
    plan = plan_of(A, True)
    values = A.data.copy()
    values[A.indices == np.repeat(np.arange(150), np.diff(A.indptr))] -= 10
    assert Emulated(plan, values).run().status["n_perturbed"] > 0


def test_long_sums_do_not_start_at_the_entry():
    """Each of up to 700 products taken from an entry one by one would be rounded at the size of the entry."""
    A = canonical(dense(700).astype("f"))
    plan = plan_of(A, True)
    L = np.tril(reference.views(plan, Emulated(plan, A.data).run().factor, 0)["lower11"][:700]).astype("d")
    permuted = A[plan.row_perm][:, plan.col_perm].toarray().astype("d")
    error = np.diag(L @ L.T - permuted) / (np.finfo("f").eps * permuted.max())
    assert np.sqrt(np.mean(error**2)) <= 2  # one by one: 2.9
