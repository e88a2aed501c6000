"""A factor in single precision with solutions in double precision, whatever engine makes it.

`MixedFactor` has the interface of engines' factors (engines/interface.py) and holds one of single precision, the matrix
in double precision, and refinement between them (refinement.py). If refinement reaches no certified solution, it
switches permanently to the engine's factor in double precision, and reports that. Results that are read from the
factors themselves (L, U, the determinant, entries of the inverse) would have only single precision, so they come from
a factor in double precision of the same values, made on first request.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from threading import RLock
from time import perf_counter
from typing import Any

import numpy as np

from ... import _core
from ...common import matrix
from ...common.listeners import UNASKED, log_enabled, tell
from ...common.matrix import SINGLE, Pattern
from ...errors import NonFiniteError, NotPositiveDefiniteError
from ..interface import Analysis, Engine
from ..problem import Problem
from .refinement import DoubleMatrix, HostMatrix, Rows, largest_of_columns, refine

#: Matrices converted to single precision without scaling: sums of moduli of all rows and columns are in this range.
LEAST, LARGEST = 1e-30, 1e30
#: Binary exponents by which right-hand sides are scaled to one.
MOST_SHIFT = 1000
RHS_PER_SOLVE = 8  # right-hand sides: each needs some ten vectors in double precision
#: Exceptions of factorizations in single precision of matrices that double precision may factor.
FAILURES = (RuntimeError, NotPositiveDefiniteError, NonFiniteError)
OUT_OF_RANGE = "values are out of the range of single precision"
LATER = "check='later' cannot refine solutions of mixed precision; pass check='now', or precision='double'"


def mixed_factor(engine: Engine, problem: Problem, analysis: Analysis, values: np.ndarray) -> Any:
    """A factor of canonical values in mixed precision; of values in single precision, the engine's own."""
    if values.dtype not in SINGLE or problem.n == 0:
        return engine.factor(problem, analysis, values)
    return MixedFactor(engine, problem, analysis, values)


class MixedFactor:
    """Solves in double precision by a factor in single precision.

    Parameters
    ----------
    engine : Engine
    problem : Problem
    analysis : Analysis
    values : ndarray, shape (nnz,)
        Canonical, in double precision, finite.
    """

    takes_both = False  # no fused refactorization and solve

    def __init__(self, engine: Engine, problem: Problem, analysis: Analysis, values: np.ndarray):
        start = perf_counter()
        self._engine, self._problem, self._analysis = engine, problem, analysis
        self.n, self._dtype = problem.n, values.dtype
        self._pattern: Pattern = problem.pattern
        self._locks: dict[int, Any] = {}
        self._single: Any = None
        self._double: Any = None
        self._double_current = False  # it is of the values held
        self._gone_over = False  # permanently
        self._left = False  # a call was interrupted, so that the factor that solves is not of the values held
        self._why, self._error = "", -1.0
        self._counts = dict.fromkeys(("n_refactor", "n_refinement", "n_gmres", "n_double"), 0)
        self._seconds = dict.fromkeys(("factor_seconds", "refactor_seconds", "solve_seconds"), 0.0)
        self._device: Any = nullcontext()
        if engine.capabilities.on_device:
            from ...cuda import devices

            self._device = devices.open_device(problem.request.device)
        self.device_array = getattr(self._device, "array_class", None)
        with self._device:
            self._hold(self._matrix_of(values if engine.capabilities.on_device else values.copy()))  # may be A.data
            if why := self._make_single(values):
                self._go_over(why)
        self._seconds["factor_seconds"] = perf_counter() - start

    @property
    def _lock(self) -> Any:
        """A lock of this process: a forked child does not wait for a thread that does not exist in it."""
        return self._locks.setdefault(os.getpid(), RLock())

    # ---- the matrix

    @property
    def _on_device(self) -> Any:
        """The pattern on the device, for all factors on it."""
        from ...cuda.nvrtc import kernel_kind
        from .device import rows_on_device

        problem = self._problem
        kind = kernel_kind(problem.kind, problem.options.hermitian)
        key = "mixed.rows", self._dtype
        return problem.memo(key, lambda: rows_on_device(self._device, problem.pattern, self._dtype, kind))

    def _matrix_of(self, values: Any) -> DoubleMatrix:
        """Of canonical values on the host, or of the caller's on the device."""
        if self.device_array is None:
            return HostMatrix(self._pattern, values)
        from .device import DeviceMatrix

        return DeviceMatrix(self._on_device, values)

    def _hold(self, A: DoubleMatrix) -> None:
        self._A, self._double_current = A, False
        self._rows: dict[bool, Rows] = {}

    def _rows_of(self, trans: int) -> Rows:
        if bool(trans) not in self._rows:
            self._rows[bool(trans)] = Rows(self._A, self.n, trans)
        return self._rows[bool(trans)]

    # ---- the factors

    def _make_single(self, values: np.ndarray) -> str:
        """Factor canonical values in single precision; why that is not possible, or empty."""
        options = self._problem.options
        static = options if options.pivoting == "partial" else replace(options, pivoting="static")
        problem = self._problem.again(replace(static, refine="never"))

        def make() -> None:
            self._single = self._engine.factor(problem, self._analysis, values.astype(SINGLE[self._dtype]))

        return self._attempt(make)

    def _attempt(self, work: Callable[[], Any]) -> str:
        """Call `work`, which makes a factor in single precision of the values held; why that is not possible, or
        empty."""
        ops = (0, 1) if self._problem.kind == "lu" else (0,)
        if not all(rows.least >= LEAST and rows.norm <= LARGEST for rows in map(self._rows_of, ops)):
            return OUT_OF_RANGE
        try:
            work()
        except FAILURES as error:
            return f"the factorization in single precision failed: {error}"
        return ""

    def _go_over(self, why: str) -> None:
        """Factor the values held in double precision, permanently."""
        if log_enabled(UNASKED):
            tell(f"mixed precision failed, factoring in double precision: {why}", UNASKED)
        self._left, self._single, self._double = True, None, None  # their memory may be needed
        self._make_double()
        self._gone_over, self._why, self._left = True, why, False

    def _make_double(self) -> None:
        self._double = self._engine.factor(self._problem, self._analysis, self._A.canonical())
        self._double_current = True
        self._counts["n_double"] += 1

    @property
    def _running(self) -> Any:
        """The factor that solves."""
        self._recover()
        return self._double if self._gone_over else self._single

    def _exact(self) -> Any:
        """A factor in double precision of the values held."""
        with self._device, self._lock:
            if self._double is None:
                self._make_double()
            elif not self._double_current:
                self._double.refactor(self._A.canonical(), None, *self._checked)
                self._double_current = True
                self._counts["n_double"] += 1
            return self._double

    # ---- refactor

    @property
    def _checked(self) -> tuple[bool, ...]:
        """Arguments for `refactor` of the factors: their values are symmetric where required."""
        return () if self._problem.kind == "lu" else (True,)

    def refactor(self, values: Any, source: np.ndarray | None = None, *checked: bool, wait: bool = True) -> int:
        """Factor new values; see `Factor.refactor`. Waits for the device, so errors are raised immediately."""
        must_wait(wait)
        start = perf_counter()
        with self._device, self._lock:
            self._recover()
            if self._gone_over:
                bad: int = self._double.refactor(values, source, *checked)
            else:
                bad = self._refactor_single(values, source, *checked)
            if bad < 0:
                self._counts["n_refactor"] += 1
                self._seconds["refactor_seconds"] = perf_counter() - start
        return bad

    def _refactor_single(self, values: Any, source: np.ndarray | None, checked: bool = False) -> int:
        on_device, before = matrix.is_cupy_array(values), self._A
        if not on_device:
            values = values.copy() if source is None else values[source]
        A = self._matrix_of(values)

        def refactor() -> None:
            self._left = True
            single = values.astype(SINGLE[self._dtype])
            self._single.refactor(single, None, *self._checked)
            if self.device_array is not None:
                self._single.check()

        try:
            self._hold(A)
            if not np.isfinite(self._rows_of(0).norm):  # or a sum that overflows
                canonical = A.canonical()
                finite = np.isfinite(canonical)
                if not finite.all():
                    self._hold(before)
                    bad = int(finite.argmin())
                    if on_device:
                        raise matrix.non_finite(self._pattern, bad, canonical)
                    return bad
            if self._checked and not checked:
                self._must_be_symmetric(A, None if on_device else values)
            if why := self._attempt(refactor):
                self._go_over(why)
        except BaseException:
            self._hold(before)
            raise
        self._left = False
        return -1

    def _must_be_symmetric(self, A: Any, canonical: np.ndarray | None) -> None:
        """Raise for new values that are not valid for Cholesky and LDL^T; `canonical`: they are on the host."""
        kind, hermitian = self._problem.kind, self._problem.options.hermitian
        if canonical is not None:
            matrix.check_new_values(self._pattern, canonical, kind, hermitian)
        elif not A.is_symmetric:
            raise matrix.not_hermitian(self._pattern, A.canonical(), kind, hermitian)

    def _recover(self) -> None:
        """Make a factor of the values held, after a call that was to change it was interrupted."""
        if self._left:
            if why := self._make_single(self._A.canonical()):
                self._go_over(why)
            self._left = False

    def refactor_solve(self, values: Any, b: Any, trans: int = 0, out: Any = None, *, wait: bool = True) -> Any:
        """`refactor`, then `solve`."""
        must_wait(wait)
        with self._lock:
            self.refactor(values)
            return self.solve(b, trans)

    # ---- solve

    def solve(self, b: Any, trans: int = 0, out: Any = None, *, wait: bool = True) -> Any:
        """op(A) X = B in double precision; see `Factor.solve`."""
        must_wait(wait)
        start = perf_counter()
        with self._device, self._lock:
            self._recover()
            x = None if self._double_current or self._gone_over else self._solve(b, trans)
            if x is None:
                x = self._double.solve(b, trans)
                self._error = self._double.backward_error
            self._seconds["solve_seconds"] = perf_counter() - start
        return x

    def _solve(self, b: Any, trans: int) -> Any:
        """Solve by refinement; None if that has failed, and the factor in double precision has been made."""
        k = 1 if b.ndim == 1 else b.shape[1]
        columns = b.reshape((self.n, k), order="F")
        from_host = self.device_array is not None and type(b) is not self.device_array
        if from_host:
            columns = self._A.local(columns)
        x, worst = self._A.full(columns.shape, np.nan), 0.0  # a right-hand side that is not finite has no solution
        for first, end in runs(np.isfinite(largest_of_columns(columns))):
            refined = refine(self._A, self._rows_of(trans), self._correct, columns[:, first:end], trans)
            self._counts["n_refinement"] += refined.steps
            self._counts["n_gmres"] += refined.iterations
            if not refined.accurate:
                self._go_over(f"refinement from single precision reached a backward error of {refined.error:.1e}")
                return None
            x[:, first:end], worst = refined.x, max(worst, refined.error)
        self._error = worst
        return (x.get(order="F") if from_host else x).reshape(b.shape, order="F")

    def _correct(self, r: Any, trans: int, size: np.ndarray | None = None) -> Any:
        """op(A)^-1 r by the factor in single precision, with columns scaled to one to stay within its range."""
        size = largest_of_columns(r) if size is None else size
        exponent = np.where(np.isfinite(size), -np.frexp(size)[1], 0).clip(-MOST_SHIFT, MOST_SHIFT)
        up, down = (self._factors(np.ldexp(1.0, sign * exponent)) for sign in (1, -1))
        d = self._single.solve((r * up).astype(SINGLE[self._dtype], order="F"), trans)
        return d.astype(self._dtype, order="F") * down

    def _factors(self, of_columns: np.ndarray) -> Any:
        """Array of factors that multiply the columns."""
        return float(of_columns[0]) if of_columns.size == 1 else self._A.local(of_columns[None, :])

    def check(self) -> float:
        """Does nothing: no call is pending."""
        return self._error

    # ---- what is known about the factor

    nnz = property(lambda self: self._running.nnz)
    method = property(lambda self: self._running.method)
    symbolic = property(lambda self: self._running.symbolic)
    backward_error = property(lambda self: self._error)
    host_factor = property(lambda self: self._exact().host_factor)
    inertia = property(lambda self: self._exact().inertia)
    slogdet = property(lambda self: self._exact().slogdet)

    def values(self) -> np.ndarray:
        with self._device, self._lock:
            values: np.ndarray = self._double.values() if self._gone_over else self._A.canonical().copy()
        return values

    def rcond(self) -> float:
        """Estimated by refined solves."""
        with self._device, self._lock:
            error = self._error
            inverse_norm = _core.inverse_norm(self._dtype.char, self.n, self.solve)
            self._error = error
            if self._gone_over:
                return float(self._double.rcond())
            rcond = 1 / (inverse_norm * self._rows_of(1).norm)
        return rcond if np.isfinite(rcond) else 0.0

    def stats(self) -> dict[str, Any]:
        """Statistics of the factor that solves, and its precision."""
        with self._device, self._lock:
            found = self._running.stats()
            other_bytes = self._double.stats()["bytes"] if self._double is not None and not self._gone_over else 0
            counts = {**self._counts, "n_refinement": self._counts["n_refinement"] + found.get("n_refinement", 0)}
            if not self._gone_over:
                other_bytes += self._pattern.nnz * self._dtype.itemsize
                other_bytes += 0 if self.device_array is None else self._on_device.nbytes
            return {
                **{name: value for name, value in found.items() if name != "error_bound"},
                **counts,
                **self._seconds,
                "bytes": found["bytes"] + other_bytes,
                "precision": "double" if self._gone_over else "mixed",
                "why_double": self._why,
            }


def must_wait(wait: bool) -> None:
    if not wait:
        raise ValueError(LATER)


def runs(finite: np.ndarray) -> list[tuple[int, int]]:
    """Ranges of columns that are solved together: at most `RHS_PER_SOLVE`, and none that is not finite."""
    found: list[tuple[int, int]] = []
    for k in np.flatnonzero(finite).tolist():
        if found and found[-1][1] == k and k - found[-1][0] < RHS_PER_SOLVE:
            found[-1] = found[-1][0], k + 1
        else:
            found.append((k, k + 1))
    return found
