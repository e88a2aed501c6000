"""Differential equations by scipy.integrate, which factors with splu."""

import numpy as np
import scipy.sparse as sp
from scipy.integrate import solve_bvp, solve_ivp


def brusselator(n, method, end):
    """Two reacting species on an `n` by `n` grid, with the Jacobian as a sparse matrix."""
    line = sp.diags_array([np.ones(n - 1), -2 * np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1])
    laplacian = 0.002 * (n + 1) ** 2 * sp.kronsum(line, line).tocsc()
    size = n * n
    begin = np.concatenate([1 + np.sin(np.linspace(0, 2 * np.pi, size)), np.full(size, 3.0)])

    def rates(t, y):
        u, v = y[:size], y[size:]
        reaction = u * u * v
        return np.concatenate([1 + reaction - 4 * u + laplacian @ u, 3 * u - reaction + laplacian @ v])

    def jacobian(t, y):
        u, v = y[:size], y[size:]
        uu, uv = sp.diags_array(u * u), sp.diags_array(2 * u * v)
        reactions = [[uv - 4 * sp.eye_array(size) + laplacian, uu], [3 * sp.eye_array(size) - uv, laplacian - uu]]
        return sp.csc_array(sp.block_array(reactions))

    def run():
        found = solve_ivp(rates, (0, end), begin, method, jac=jacobian, rtol=1e-4, atol=1e-7)
        assert found.success
        return found.y[:, -1]

    return run


def bdf(n):
    return brusselator(n, "BDF", 2.0)


def radau(n):
    return brusselator(n, "Radau", 0.5)


def boundary_values(frequency):
    """A boundary layer beside oscillations, on a mesh that solve_bvp refines."""

    def rhs(x, y):
        return np.stack([y[1], frequency**2 * (np.sin(y[0]) - x * y[1] / frequency)])

    def ends(left, right):
        return np.array([left[0] - 1, right[0] + 1])

    def run():
        x = np.linspace(-1, 1, 20_000)
        found = solve_bvp(rhs, ends, x, np.stack([-x, -np.ones(x.size)]), tol=1e-8, max_nodes=100_000)
        return found.sol(np.linspace(-1, 1, 500))[0]

    return run
