"""Solve kernels against the matrix: every scalar, kind, transpose and number of right-hand sides."""

import numpy as np
import pytest
import solve_driver as driver

# Caps that put the same small matrices into different phases.
PARAMETERS = {
    "default": {},
    "warp": {"warp_rows": 16, "block_rows": 240},
    "block": {"warp_rows": 4, "small_rows": 12, "block_rows": 240},
}
MATRICES = ("poisson:13x11", "circuit:12x12", "arrow", "dense")


def rhs(n, dtype, nrhs):
    rng = np.random.default_rng(nrhs)
    b = rng.standard_normal((n, nrhs) if nrhs else n)
    if dtype in "FD":
        b = b + 1j * rng.standard_normal(b.shape)
    return b.astype(dtype)


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("cholesky", [False, True], ids=["lu", "cholesky"])
def test_solve(cholesky, dtype, name, parameters):
    if cholesky and name == "circuit:12x12":
        pytest.skip("not Hermitian")
    case = driver.case(name, dtype, cholesky, **PARAMETERS[parameters])
    for trans in "NTH":
        for nrhs in (0, 3):
            b = rhs(case.plan.n, dtype, nrhs)
            x = driver.solve(case, b, trans, seed=1)
            assert driver.backward_error(case, x, b, trans) < 50 * driver.EPS[dtype], (trans, nrhs)
            again = driver.solve(case, b, trans, seed=2, grid=5)
            assert np.array_equal(x, again), (trans, nrhs)
