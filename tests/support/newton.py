"""A program of the caller's in a graph: kernels of his own, and calls of a factor with check="later"."""

import numpy as np
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from support.small_matrices import canonical, rhs
from support.solves import on_host


class Newton:
    """A time step: (A + 3 s diag(x)^2) x' = x + sin(t) b. NumPy's functions act on arrays of the host and of CuPy.

    They write to arrays that exist, so that they can be captured. `scale`, s, may be set between two steps. With
    `count` it is a step of that many systems with matrices (1 + k / 10) A, and `factor` is a batch.
    """

    def __init__(self, put, engine, make=gs.splu, A=None, count=None):
        self.A = canonical(gallery.poisson(4, 4) + 0.1 * sp.eye_array(16)) if A is None else A
        n, data = self.A.shape[0], self.A.data
        columns = np.repeat(np.arange(n), np.diff(self.A.indptr))
        b = rhs(n)
        if count is not None:
            data = np.multiply.outer(1 + np.arange(count) / 10, data)
            b = np.array([rhs(n, seed=k) for k in range(count)])
        self.values, self.x, self.residual = put(data), put(np.zeros(b.shape)), put(np.zeros(b.shape))
        given = () if count is None else (self.values,)
        self.factor, self.diagonal = make(self.A, *given, engine=engine), (self.A.indices == columns)
        self.arrays = tuple(map(put, (data, columns, 3.0 * self.diagonal, b)))
        self.time, self.sine, self.scale = (put(np.full(1, value)) for value in (0.0, 0.0, 1.0))
        self.spoilt = put(np.ones(1 if count is None else (count, 1)))

    def assemble(self):
        data, columns, three, b = self.arrays
        values, residual = self.values, self.residual
        np.take(self.x, columns, axis=-1, out=values)
        np.multiply(values, values, out=values)
        np.multiply(values, three, out=values)
        np.multiply(values, self.scale, out=values)
        np.add(values, data, out=values)
        np.multiply(values, self.spoilt, out=values)
        np.add(self.time, 0.02, out=self.time)
        np.sin(self.time, out=self.sine)
        np.multiply(b, self.sine, out=residual)
        np.add(residual, self.x, out=residual)

    def solve(self):
        self.factor.refactor_solve(self.values, self.residual, check="later", out=self.x)

    def body(self, call):
        call(self.assemble)
        self.solve()

    def capture(self, captured):
        """Replays of a step, after one that was not captured."""
        self.assemble()
        self.solve()
        self.x[...], self.time[...] = 0, 0
        return captured(self.body)

    def run(self, steps):
        """The same by calls that wait; the solution after every step."""
        found = []
        for _ in range(steps):
            self.assemble()
            self.x[...] = self.factor.refactor_solve(self.values, self.residual)
            found.append(on_host(self.x).copy())
        return found
