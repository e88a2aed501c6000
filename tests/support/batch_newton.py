"""Newton's method for many systems, in graphs of the caller's, on an emulated device and on a real one.

A step a time step of A_s x_s + x_s^3 = sin(t / 50) b_s, s < nbatch, A_s = (1 + s / 10) A. What a step does besides
solving is a matter of the device: subclasses `assemble` and `update`.
"""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs

from .small_matrices import EPS, rhs
from .solves import on_host


class BatchNewton:
    """`put` brings arrays to the device."""

    def __init__(self, put, A, count, make=gs.splu_batch, **options):
        self.A, self.n, self.count = A, A.shape[0], count
        self.given = np.multiply.outer(1 + np.arange(count) / 10, A.data)
        self.b = np.array([rhs(self.n, seed=s) for s in range(count)])
        self.diagonal = np.flatnonzero(A.indices == np.repeat(np.arange(self.n), np.diff(A.indptr)))
        self.values = put(self.given.copy())
        self.batch = make(A, self.values, engine="supernodal", **options)
        self.x, self.residual, self.step = (put(np.zeros((count, self.n))) for _ in range(3))

    def solve(self):
        self.batch.refactor_solve(self.values, self.residual, check="later", out=self.step)

    def advance(self):
        self.assemble()
        self.solve()
        self.update()

    def waited_for(self, steps):
        """The solutions after so many steps by calls that wait."""
        for _ in range(steps):
            self.assemble()
            self.step[...] = self.batch.refactor_solve(self.values, self.residual)
            self.update()
        return on_host(self.x)

    def matrix(self, system):
        return sp.csc_array((self.given[system], self.A.indices, self.A.indptr), shape=self.A.shape)

    def error(self, time):
        """What is left of the equations after step `time`."""
        x = on_host(self.x)
        left = [self.matrix(s) @ x[s] + x[s] ** 3 - np.sin(time / 50) * self.b[s] for s in range(self.count)]
        return np.abs(left).max()


def check_steps(newton, launch, expected, steps):
    """`launch(steps)` replays a captured step; another one that waits finds `expected`."""
    before = gs.factorization_count()
    launch(steps)
    assert on_host(newton.x).tobytes() == expected.tobytes()
    error = newton.batch.check()
    assert error.shape == (newton.count,) and (error > 0).all() and (error < 100 * EPS["d"]).all()
    assert not newton.batch.status.any() and gs.factorization_count() == before
    assert np.isnan(newton.batch.check()).all()
    assert newton.error(steps) < 0.02


def check_spoilt_systems(newton, launch, expected, when, spoilt, steps):
    """In step `when` the values of systems `spoilt` are NaN; programs that continue with the results get a status."""
    launch(when)
    others = np.setdiff1d(np.arange(newton.count), spoilt)
    x = on_host(newton.x)
    assert np.isnan(x[spoilt]).all() and np.isfinite(x[others]).all()
    newton.x[spoilt] = 0
    launch(steps - when)
    assert on_host(newton.x)[others].tobytes() == expected[others].tobytes()
    error, status = newton.batch.check(), newton.batch.status
    assert np.isinf(error[spoilt]).all() and (error[others] < 100 * EPS["d"]).all()
    assert (status[spoilt] == gs.BatchStatus.UNTRUSTED).all() and not status[others].any()
    launch(1)
    assert (newton.batch.check() < 100 * EPS["d"]).all() and not newton.batch.status.any()


def check_calls_that_wait(newton, capture):
    """They are refused where they would end a capture, leave the batch as it was, and the capture goes on."""
    before = newton.batch.status, gs.factorization_count()

    def step():
        for call in (
            lambda: newton.batch.solve(newton.residual),
            lambda: newton.batch.refactor(newton.values),
            lambda: newton.batch.refactor_solve(newton.values, newton.residual),
            newton.batch.check,
            newton.batch.slogdet,
            lambda: newton.batch.status,
        ):
            with pytest.raises(RuntimeError, match="the current stream is captured"):
                call()
        newton.solve()

    launch = capture(step)
    assert gs.factorization_count() == before[1] + newton.count  # of the call that was captured
    launch(2)
    assert (newton.batch.check() < 100 * EPS["d"]).all()
    assert np.array_equal(newton.batch.status, before[0])
