"""precision="mixed" on an emulated device."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu.common.timing import backward_error
from gpusplu.cuda import layout
from support import emulated
from support.mixed import ENOUGH, check_mixed, check_parts_are_double, check_values_on_device, conditioned
from support.small_matrices import canonical, random_matrix, rhs, spd_matrix
from support.solve_driver import pointer

pytestmark = pytest.mark.usefixtures("cupy")
ROWS = "common/row_sizes.cu"


@pytest.mark.parametrize("conjugate", [0, 1])
@pytest.mark.parametrize("dtype", "fdFD")
def test_rows(dtype, conjugate):
    n, nrhs = 70, 3
    A = random_matrix(n, dtype, density=0.2)
    rows = canonical(A.T)  # whose columns are the rows of A
    x, b = (np.asfortranarray(rhs(n, dtype, (nrhs,), seed=k)) for k in (1, 2))
    r, sizes = np.full_like(b, np.nan), np.full((n, nrhs), np.nan, order="F")
    order = np.random.default_rng(3).permutation(A.nnz).astype(np.int32)
    shuffled = np.empty_like(rows.data)
    shuffled[order] = rows.data
    norms = np.zeros((4, nrhs), order="F")
    for lanes_log2 in (0, 3, 5):
        args = np.zeros((), layout.arguments(ROWS)["row_sizes"])
        arrays = {"ptr": rows.indptr.astype(np.int64), "ind": rows.indices, "source": order, "values": shuffled}
        for name, array in {**arrays, "x": x, "b": b, "r": r, "sizes": sizes, "norms": norms}.items():
            args[name] = pointer(array)
        args["ld"] = args["n"] = n
        args["nrhs"], args["conjugate"], args["lanes_log2"] = nrhs, conjugate, lanes_log2
        emulated.compile(ROWS, dtype).launch("row_sizes", 2, 256, 64, args, seed=4)
        op = A.conj() if conjugate else A
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(r, b - op @ x, atol=100 * eps)
        np.testing.assert_allclose(sizes, abs(A) @ abs(x) + abs(b), rtol=100 * eps)
        expected = [abs(array).max(axis=0) for array in (r, x, sizes, r / sizes)]
        np.testing.assert_allclose(norms, expected, rtol=100 * eps, atol=10 * eps)


@pytest.mark.parametrize("dtype", "dD")
@pytest.mark.parametrize("make", [gs.splu, gs.cholesky], ids=lambda make: make.__name__)
def test_mixed(device, cupy, make, dtype):
    A = (random_matrix if make is gs.splu else spd_matrix)(dtype=dtype)
    for put in (np.asarray, cupy.asarray):
        check_mixed(A, make, ((), (3,), (9,)), put, engine="supernodal")
    mixed, double = (make(A, engine="supernodal", precision=precision) for precision in ("mixed", "double"))
    check_parts_are_double(A, mixed, double)


def test_columns(device, cupy):
    check_mixed(random_matrix(), gs.splu, ((), (3,)), cupy.asarray, engine="sflu")


def test_values_on_the_device(device, cupy):
    check_values_on_device(cupy, "supernodal")


def test_the_factor_is_made_in_single_precision(device):
    gs.cholesky(spd_matrix(), engine="supernodal", precision="mixed")
    assert not any(scalar == "d" for file, scalar, _ in device.loaded if file.startswith("fronts"))
    assert any(scalar == "f" for file, scalar, _ in device.loaded if file.startswith("fronts"))


def test_auto(device):
    A = spd_matrix()
    assert "precision" not in gs.cholesky(A, device=0, precision="auto").stats
    device.double_ratio = 32
    slow = gs.cholesky(A, device=0, precision="auto", deterministic=True)
    assert slow.stats.precision == "mixed"
    assert "32 times as fast" in slow.explain()
    gs.cache_clear()
    for _ in range(2):
        assert gs.cholesky(A, device=0, precision="auto").stats.precision == "mixed"
    assert gs.cache_info().hits == 1
    assert "precision" not in gs.cholesky(A, device=0).stats
    assert "precision" not in gs.cholesky(A, engine="cpu", precision="auto").stats


def test_calls_that_nobody_waits_for(device, cupy):
    A = spd_matrix()
    factor = gs.cholesky(A, engine="supernodal", precision="mixed")
    with pytest.raises(ValueError, match="precision='double'"):
        factor.solve(cupy.asarray(rhs(50)), check="later")
    with pytest.raises(ValueError, match="precision='double'"):
        factor.refactor(cupy.asarray(A.data), check="later")
    factor.check()
    values, b = cupy.asarray(2 * A.data), cupy.asarray(rhs(50))
    x = factor.refactor_solve(values, b)
    assert backward_error(2 * A, x.get(), rhs(50)) < ENOUGH


def test_slow_refinement(device, cupy):
    A = conditioned(1e8)
    lu = gs.splu(A, engine="supernodal", precision="mixed")
    b = rhs(60)
    assert backward_error(A, lu.solve(cupy.asarray(b)).get(), b) < ENOUGH
    assert lu.stats.n_gmres > 0


@pytest.mark.parametrize("make", [gs.splu, gs.cholesky], ids=lambda make: make.__name__)
def test_values_before_are_kept(device, cupy, make):
    A = (random_matrix if make is gs.splu else spd_matrix)()
    factor = make(A, engine="supernodal", precision="mixed")
    spoilt = A.data.copy()
    spoilt[7] = np.nan
    for put in (np.asarray, cupy.asarray):
        with pytest.raises(gs.NonFiniteError):
            factor.refactor(put(spoilt))
        with pytest.raises((RuntimeError, gs.NotPositiveDefiniteError)):
            factor.refactor(put(0 * A.data))
        x = factor.solve(rhs(A.shape[0]))
        assert backward_error(A, x, rhs(A.shape[0])) < ENOUGH
    assert factor.stats.precision == "mixed"
