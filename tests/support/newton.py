"""Newton's method in a graph: kernels of the caller's, and calls of a factor with check="later"."""

import numpy as np
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from support import fake_cupy
from support.small_matrices import canonical, rhs


class Newton:
    """One step of Newton's method a time step for A x + x^3 = sin(t / 50) b: kernels of the caller's, and a factor."""

    def __init__(self, engine, make=gs.splu):
        self.A = canonical(gallery.poisson(4, 4) + 0.1 * sp.eye_array(16))
        n = self.A.shape[0]
        self.factor = make(self.A, engine=engine)
        self.diagonal = np.flatnonzero(self.A.indices == np.repeat(np.arange(n), np.diff(self.A.indptr)))
        self.values, self.b = fake_cupy.asarray(self.A.data), rhs(n)
        self.x, self.residual, self.step = (fake_cupy.asarray(np.zeros(n)) for _ in range(3))
        self.time, self.spoilt = 0, {}

    def assemble(self):
        self.time += 1
        self.values[...] = self.A.data
        self.values[self.diagonal] += 3 * self.x**2
        self.values *= self.spoilt.get(self.time, 1.0)
        self.residual[...] = np.sin(self.time / 50) * self.b - self.A @ np.asarray(self.x) - self.x**3

    def update(self):
        self.x += self.step

    def capture(self, device):
        """One step."""
        self.factor.refactor_solve(self.values, self.residual, check="later", out=self.step)
        with device.capture() as graph:
            graph.call(self.assemble)
            self.factor.refactor_solve(self.values, self.residual, check="later", out=self.step)
            graph.call(self.update)
        return graph

    def run(self, steps):
        """The same by calls that wait; the solution after every step."""
        found = []
        for _ in range(steps):
            self.assemble()
            self.step[...] = self.factor.refactor_solve(self.values, self.residual)
            self.update()
            found.append(np.array(self.x))
        return found
