"""A Monte Carlo power flow: Newton's method for hundreds of random loads of one grid, all of them in one batch.

Each scenario has its own Jacobian on the pattern of the grid, so that one analysis serves all of them and every
iteration is one `refactor_solve` of the batch.
"""

import numpy as np
import scipy.sparse as sp

import gpusplu as gs


def grid(side=12, seed=0):
    """Admittances of a meshed grid of side x side buses, per unit; bus 0 is the slack bus."""
    rng = np.random.default_rng(seed)
    bus = np.arange(side * side).reshape(side, side)
    ends = np.vstack([np.c_[bus[:, :-1].ravel(), bus[:, 1:].ravel()], np.c_[bus[:-1].ravel(), bus[1:].ravel()]])
    series = 1 / (rng.uniform(0.01, 0.03, len(ends)) + 1j * rng.uniform(0.03, 0.1, len(ends)))
    incidence = sp.coo_array(
        (np.r_[np.ones(len(ends)), -np.ones(len(ends))], (np.tile(np.arange(len(ends)), 2), ends.T.ravel()))
    ).tocsr()
    return sp.csr_array(incidence.T @ sp.diags_array(series) @ incidence)


class Jacobian:
    """Of the power mismatch of all buses but the slack bus by angles and magnitudes of their voltages.

    Its four blocks have the pattern of the admittances, so that the values of all scenarios are computed at once.
    """

    def __init__(self, Y):
        Y = sp.coo_array(Y)
        self.row, self.col, self.y = Y.row, Y.col, Y.data
        inner = (self.row > 0) & (self.col > 0)
        self.kept, n = np.flatnonzero(inner), Y.shape[0] - 1
        row, col = self.row[inner] - 1, self.col[inner] - 1
        rows, columns = np.r_[row, row, row + n, row + n], np.r_[col, col + n, col, col + n]
        self.order = np.lexsort((rows, columns))
        self.rows, self.columns, self.size = rows[self.order], columns[self.order], 2 * n

    def matrix(self, values):
        return sp.csc_array((values, (self.rows, self.columns)), shape=(self.size, self.size))

    def values(self, V, current):
        """Values of every scenario, shape (scenarios, entries); V and the currents have shape (scenarios, buses)."""
        product = V[:, self.row] * np.conj(self.y * V[:, self.col])
        by_angle, by_magnitude = -1j * product, product / np.abs(V[:, self.col])
        own = np.flatnonzero(self.row == self.col)
        injected = (V * np.conj(current))[:, self.row[own]]
        by_angle[:, own] += 1j * injected
        by_magnitude[:, own] += injected / np.abs(V[:, self.row[own]])
        blocks = [by_angle.real, by_magnitude.real, by_angle.imag, by_magnitude.imag]
        return np.concatenate([block[:, self.kept] for block in blocks], axis=1)[:, self.order]


def power_flow(Y, demand, tolerance=1e-8, most=20):
    """Voltages, shape (scenarios, buses), for demands of that shape without the slack bus; and the iterations."""
    scenarios, n = demand.shape
    jacobian, angle, magnitude = Jacobian(Y), np.zeros((scenarios, n + 1)), np.ones((scenarios, n + 1))
    batch = None
    for iteration in range(most):
        V = magnitude * np.exp(1j * angle)
        current = V @ Y.T
        mismatch = (V * np.conj(current))[:, 1:] + demand
        residual = np.concatenate((mismatch.real, mismatch.imag), axis=1)
        if np.abs(residual).max() < tolerance:
            return V, iteration
        values = jacobian.values(V, current)
        if batch is None:
            batch = gs.splu_batch(jacobian.matrix(values[0]), values)
            step = batch.solve(residual)
        else:
            step = batch.refactor_solve(values, residual)
        angle[:, 1:] -= step[:, :n]
        magnitude[:, 1:] -= step[:, n:]
    raise RuntimeError("Newton's method did not converge")


def main(scenarios=200, side=12):
    Y = grid(side)
    rng = np.random.default_rng(1)
    demand = rng.uniform(0.0, 0.02, (scenarios, Y.shape[0] - 1)) * (1 + 0.3j)
    V, iterations = power_flow(Y, demand)
    lowest = np.abs(V).min(axis=1)
    print(f"{scenarios} scenarios of {Y.shape[0]} buses in {iterations} iterations")
    print(f"lowest voltage: {lowest.mean():.4f} on average, {np.quantile(lowest, 0.05):.4f} in the worst 5%")
    return V, Y, demand


if __name__ == "__main__":
    main()
