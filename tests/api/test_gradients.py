"""What derivatives are made of, without a framework: against finite differences, and the count of factorizations."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.factors.gradients import ADJOINT, OPERATIONS, Factored, coordinates, outer

DENSE = {"N": lambda a: a, "T": lambda a: a.T, "H": lambda a: a.conj().T, "C": np.conj}


def system(dtype, nrhs=None, n=7):
    rng = np.random.default_rng(0)
    shape = (n,) if nrhs is None else (n, nrhs)

    def draw(*shape):
        values = rng.standard_normal(shape)
        return (values + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)

    A = sp.csr_array(sp.random(n, n, 0.3, rng=rng) + sp.eye(n)).astype(dtype)
    A.data[:] = draw(A.nnz)
    A = sp.csr_array(A + 4 * sp.eye(n, dtype=dtype))
    return A, draw(*shape), draw(*shape)


@pytest.mark.parametrize("nrhs", [None, 3])
@pytest.mark.parametrize("dtype", ["d", "D"])
@pytest.mark.parametrize("op", OPERATIONS)
def test_gradient_of_a_solve(op, dtype, nrhs):
    A, b, g = system(dtype, nrhs)
    rows, columns = coordinates(A.indptr, A.indices, by_rows=True)
    factored = Factored(gs.splu(A.T), transposed=True)
    x = factored.solve(b, op)
    assert abs(DENSE[op](A.toarray()) @ x - b).max() < 1e-13
    y = factored.solve(g, ADJOINT[op])
    gradient = -outer(op, rows, columns, y, x, nrhs is None)
    for entry in range(A.nnz):
        for step in (1e-6, 1e-6j) if dtype == "D" else (1e-6,):
            there = A.copy(), A.copy()
            there[0].data[entry] += step
            there[1].data[entry] -= step
            far, near = (np.vdot(g, np.linalg.solve(DENSE[op](other.toarray()), b)).real for other in there)
            expected = (np.conj(gradient[entry]) * step).real / abs(step)
            assert abs((far - near) / (2 * abs(step)) - expected) < 1e-7
