"""Optimal control of a chain of masses by the interior point method of qtqp."""

import numpy as np
import qtqp
import scipy.sparse as sp


def interior_point(steps):
    """A quadratic program over `steps` steps of 24 states and 8 forces that are bounded."""
    n, m = 24, 8
    rng = np.random.default_rng(0)
    couple = sp.diags_array([np.ones(n - 1), -2 * np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1])
    dynamics, inputs = sp.eye_array(n) + 0.1 * couple, sp.random_array((n, m), density=0.3, rng=rng)
    states = sp.kron(sp.eye_array(steps), sp.eye_array(n)) - sp.kron(sp.eye_array(steps, k=-1), dynamics)
    equalities = sp.hstack([states, -sp.kron(sp.eye_array(steps), inputs)])
    forces = sp.hstack([sp.csc_array((steps * m, steps * n)), sp.eye_array(steps * m)])
    a = sp.csc_matrix(sp.vstack([equalities, forces, -forces]))
    start = np.zeros(steps * n)
    start[:n] = dynamics @ rng.normal(size=n)
    b = np.concatenate([start, np.full(2 * steps * m, 0.5)])
    p = sp.csc_matrix(sp.diags_array(np.concatenate([np.ones(steps * n), np.full(steps * m, 0.1)])))

    def run():
        problem = qtqp.QTQP(a=a, b=b, c=np.zeros(a.shape[1]), z=steps * n, p=p)
        return problem.solve(verbose=False, linear_solver=qtqp.LinearSolver.SCIPY).x

    return run
