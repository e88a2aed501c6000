"""The supernodal GPU engine by phase, values and right-hand sides on the device; skipped where no device can run it.

Every timed body ends with a synchronization: what is measured is what a caller waits for.
"""

import numpy as np

import gpusplu as gs
from gpusplu import gallery

ENGINE = "supernodal"
UNSYMMETRIC = ["circuit:60x60", "rlc:120x120", "rlc:300x300", "convdiff:30"]
DEFINITE = ["poisson:300x300", "poisson:40x40x40", "elast:20x20x20"]


class Supernodal:
    """Matrices of both kinds; ``cpu`` is our CPU engine on the same machine, under the same names."""

    params = (UNSYMMETRIC + DEFINITE, (ENGINE, "cpu"))
    param_names = ("matrix", "engine")
    timeout = 300

    def setup(self, name, engine):
        try:
            gs.splu(gallery.poisson(4, 4), engine=ENGINE)  # loads the kernels
        except gs.EngineUnavailableError as error:
            raise NotImplementedError(str(error)) from error
        import cupy

        on_device = engine == ENGINE
        self.synchronize = cupy.cuda.get_current_stream().synchronize if on_device else lambda: None
        put = cupy.asarray if on_device else np.asarray
        self.A, self.definite = gallery.named(name), name in DEFINITE
        self.b = put(np.random.default_rng(0).normal(size=self.A.shape[0]))
        self.values = put(self.A.data * 1.25)
        self.symbolic = self.analyze(engine)
        self.factorization = self.symbolic.factor(self.values)
        self.time_step(name, engine)

    def analyze(self, engine):
        return gs.analyze(self.A, cholesky=self.definite, engine=engine)

    def time_analyze(self, name, engine):
        self.analyze(engine)
        self.synchronize()

    def time_factor(self, name, engine):
        self.symbolic.factor(self.values)
        self.synchronize()

    def time_refactor(self, name, engine):
        self.factorization.refactor(self.values)
        self.synchronize()

    def time_solve(self, name, engine):
        self.factorization.solve(self.b)
        self.synchronize()

    def time_step(self, name, engine):
        """One Newton step: refactor and solve."""
        self.factorization.refactor_solve(self.values, self.b)
        self.synchronize()

    def time_total(self, name, engine):
        self.analyze(engine).factor(self.values)
        self.synchronize()
