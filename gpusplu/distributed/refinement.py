"""Solutions that are checked, refined, and if that is not enough solved again with other pivots."""

from __future__ import annotations

from math import isfinite, sqrt

import numpy as np

from ..common.accuracy import ACCEPTED, ENOUGH, MOST_STEPS
from .solvers import Solver
from .system import System


class Certified:
    """Solves with a factorization, with known backward errors.

    Attributes
    ----------
    error : float or None
        The largest since it was set to None.
    n_refinement, n_repivoted : int
        Steps of refinement, and how often pivots were chosen with more care.
    """

    def __init__(self, system: System, solver: Solver):
        self._system, self._solver = system, solver
        self.error: float | None = None
        self.n_refinement = self.n_repivoted = 0
        self._suspect = False

    def solve(self, b: np.ndarray, op: int) -> np.ndarray:
        """One column, for A (0), its transpose (1) or its conjugate transpose (2)."""
        system = self._system
        self._solver.factor_if_missing()
        conjugated = op == 2 and b.dtype.kind == "c"
        system.b.setArray(b.conj() if conjugated else b)
        error = self._refined(op > 0)
        finite = isfinite(system.largest(system.b))
        if finite and not error <= ACCEPTED * system.eps and self._solver.harder():
            self.n_repivoted += 1
            self._solver.factor()
            error = self._refined(op > 0)
        if finite:
            self._suspect |= not error <= sqrt(system.eps)
        self.error = error if self.error is None else max(self.error, error)
        x: np.ndarray = system.x.getArray() if b.dtype.kind == "c" else system.x.getArray().real
        return x.conj() if conjugated else x.copy()

    def must_warn(self) -> bool:
        """Whether a solution of a finite right-hand side was wrong by half of the digits; resets the flag."""
        suspect, self._suspect = self._suspect, False
        return suspect

    def _refined(self, transposed: bool) -> float:
        """Solve for the vector b into x; returns the backward error of x."""
        system = self._system
        self._solver.solve(system.b, system.x, transposed)
        error = system.measure(transposed)
        for _ in range(MOST_STEPS):
            if not error > ENOUGH * system.eps:
                break
            self._solver.solve(system.r, system.d, transposed)
            system.x.axpy(1, system.d)
            before, error = error, system.measure(transposed)
            if not error < before:
                system.x.axpy(-1, system.d)
                return system.measure(transposed)
            self.n_refinement += 1
            if error > before / 2:
                break
        return error

    def distance_of_factors(self, n_samples: int) -> float:
        """Estimate of ``||I - A M^-1||`` by random right-hand sides, where M is the product of the factors."""
        system, squares = self._system, 0.0
        for number in range(1, n_samples + 1):
            system.fill_random(system.b, number)
            self._solver.solve(system.b, system.x, False)
            system.measure(False)
            squares += system.r.norm() ** 2
        return sqrt(squares / n_samples)
