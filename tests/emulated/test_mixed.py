"""precision="mixed" on an emulated device."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu.cuda import layout
from support import emulated
from support.small_matrices import canonical, dtypes, random_matrix, rhs, spd_matrix
from support.solve_driver import pointer

pytestmark = pytest.mark.usefixtures("cupy")
ROWS = "common/row_sizes.cu"


@pytest.mark.parametrize("conjugate", [0, 1])
@pytest.mark.parametrize("dtype", dtypes())
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
