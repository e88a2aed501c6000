"""Phases of LU and Cholesky over gallery matrices, with SciPy's routines as the baseline under the same names.

SciPy has neither an analysis of its own nor a refactorization: there `factor` and `refactor` are a whole splu, and
`analyze` is absent.
"""

import numpy as np
import scipy.sparse.linalg

import gpusplu as gs
from gpusplu import gallery

UNSYMMETRIC = [
    "circuit:60x60",
    "rlc:40x40",
    "rlc:120x120",
    "power:100x100",
    "convdiff:120x120",
    "convdiff:16",
]
DEFINITE = ["poisson:150x150", "poisson:18x18x18", "elast:10x10x10"]


def skip_scipy(name, solver):
    """SciPy has nothing to time here."""
    if solver == "scipy":
        raise NotImplementedError


class _Phases:
    """One benchmark a phase; subclasses say how a solver analyses and factors."""

    param_names = ("matrix", "solver")

    def setup(self, name, solver):
        gs.cache_limit(entries=0)  # every total is one of a pattern that was never seen
        self.A = gallery.named(name)
        self.b = np.random.default_rng(0).normal(size=self.A.shape[0])
        self.values = self.A.data * 1.25
        self.symbolic = self.analyze(solver)
        self.factorization = self.factor(solver)

    def factor(self, solver):
        if solver == "scipy":
            return scipy.sparse.linalg.splu(self.A)
        return self.symbolic.factor(self.A.data)

    def time_analyze(self, name, solver):
        self.analyze(solver)

    time_analyze.setup = skip_scipy

    def time_factor(self, name, solver):
        self.factor(solver)

    def time_refactor(self, name, solver):
        if solver == "scipy":
            self.factor(solver)
        else:
            self.factorization.refactor(self.values)

    def time_solve(self, name, solver):
        self.factorization.solve(self.b)

    def time_total(self, name, solver):
        if solver == "scipy":
            scipy.sparse.linalg.splu(self.A).solve(self.b)
        else:
            self.total(solver).solve(self.b)


class LU(_Phases):
    """`auto` is the default; `partial` is the column method with threshold partial pivoting."""

    params = (UNSYMMETRIC, ("auto", "partial", "scipy"))

    def analyze(self, solver):
        return None if solver == "scipy" else gs.analyze(self.A, pivoting=solver)

    def total(self, solver):
        return gs.splu(self.A, pivoting=solver)


class Cholesky(_Phases):
    """`lu` is our own splu of the same matrix."""

    params = (DEFINITE, ("cholesky", "lu", "scipy"))

    def analyze(self, solver):
        return None if solver == "scipy" else gs.analyze(self.A, cholesky=solver == "cholesky")

    def total(self, solver):
        return gs.cholesky(self.A) if solver == "cholesky" else gs.splu(self.A)
