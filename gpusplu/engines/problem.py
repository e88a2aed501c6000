"""A matrix to be factored: the request, and the analyses that were made of it, each of them once.

The three analyses of the core are here because engines share them: those for fronts also predict columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from ..common.matrix import EMPTY, SINGLE, Pattern
from ..common.memo import Memo
from ..common.options import Options
from ..cost.calibration import for_core
from ..cost.model import REFACTORIZATIONS


class Request(NamedTuple):
    """A caller's options for the choice of an engine.

    Attributes
    ----------
    engine : str
        "auto" until the matrix decides.
    reason : str
        Of a named engine; for "auto", why devices are not considered, or empty.
    device : int or None
        Number of the CUDA device; of several, the first.
    device_memory : int or None
        Device memory that may be used [bytes]; None for what is free.
    refactorizations : float
        How often the caller expects to refactor and solve.
    on_device : bool
        The caller's values and vectors are on a device.
    may_migrate : bool
        A factor that begins on the processor may migrate to a device (migration.py).
    remembered : bool
        An analysis of the same pattern may be used again (patterns.py).
    systems : int
        Matrices of the pattern that will be factored together; 0 for a single one.
    devices : tuple of int
        Numbers of several CUDA devices that share the work; empty: one does it.
    """

    engine: str = "auto"
    reason: str = ""
    device: int | None = None
    device_memory: int | None = None
    refactorizations: float = REFACTORIZATIONS
    on_device: bool = False
    may_migrate: bool = False
    remembered: bool = True
    systems: int = 0
    devices: tuple[int, ...] = ()

    @property
    def uses(self) -> float:
        """Refactorizations and solves that engines are compared by: one if a factor can migrate when there are more."""
        return 1 if self.may_migrate else self.refactorizations


class Problem:
    """A matrix, as engines see it.

    Parameters
    ----------
    pattern : Pattern
    values : ndarray, shape (nnz,)
        Canonical and finite. They guide matching and scaling.
    kind : {"lu", "cholesky", "ldlt"}
    options : Options
    request : Request
    memo : Memo, optional
        Results that engines have stored for the matrix already.

    Attributes
    ----------
    dtype : dtype
        Of the factors that engines make: single for values in double precision with ``precision="mixed"``.
    memo : Memo
        Results for the matrix, which engines add to: keys begin with the engine's name.
    seconds : dict
        Spent so far, by phase [s].
    """

    def __init__(
        self,
        pattern: Pattern,
        values: np.ndarray,
        kind: str,
        options: Options,
        request: Request,
        memo: Memo | None = None,
    ):
        self.pattern, self.values, self.kind = pattern, values, kind
        self.options, self.request = options, request
        self.dtype = values.dtype if options.precision == "double" else self._factored_as(values.dtype)
        self.memo = memo or Memo()
        self.seconds: dict[str, float] = {}

    n = property(lambda self: self.pattern.n)
    nnz = property(lambda self: self.pattern.nnz)
    cholesky = property(lambda self: self.kind == "cholesky")
    itemsize = property(lambda self: self.dtype.itemsize)

    def _factored_as(self, dtype: np.dtype) -> np.dtype:
        return SINGLE.get(dtype, dtype) if self.options.precision == "mixed" else dtype

    def resolve_precision(self, precision: str) -> None:
        """Set the precision that "auto" selects; no effect if the caller set one."""
        if self.options.precision == "auto":
            self.options = replace(self.options, precision=precision)
            self.dtype = self._factored_as(self.dtype)

    def again(
        self, options: Options | None = None, request: Request | None = None, dtype: np.dtype | None = None
    ) -> Problem:
        """A copy without values, once analysed, for factorizations with options that led to the same analysis, on the
        device that was found, or of values of another dtype."""
        options = options or self.options
        if options.precision != self.options.precision:
            options = replace(options, precision=self.options.precision)
        values = EMPTY[dtype or self.values.dtype]
        return Problem(self.pattern, values, self.kind, options, request or self.request, self.memo)

    def timed(self, phase: str, make: Callable[[], Any]) -> Any:
        """The result of `make`; its seconds are counted."""
        start = perf_counter()
        made = make()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + perf_counter() - start
        return made

    # ---- analyses of the core

    def _analyzed(self, key: str, analyze: Callable[..., Any], **options: Any) -> Any:
        ordering = {"ordering": self.options.ordering, "perm": self.options.perm, "matching": self.options.matching}
        arrays = (self.pattern.ptr, self.pattern.ind, self.values, for_core())
        return self.memo(key, lambda: self.timed("analyze", lambda: analyze(*arrays, **ordering, **options)))

    def for_processor(self) -> Any:
        """The method and the ordering that the processor factors by."""
        return self._analyzed(
            "for_processor",
            _core.analyze,
            cholesky=self.cholesky,
            ldlt=self.kind == "ldlt",
            symmetric=self.kind == "lu" and self.options.symmetric and not self.request.systems,
            method=self._method(),
            refactorizations=self.request.refactorizations,
        )

    def by_columns(self) -> Any:
        """Columns of the processor, whatever suits a single system."""
        return self._analyzed("by_columns", _core.analyze, method="column")

    def _method(self) -> str:
        """Triangular systems of a batch are factored by columns, which keep them triangular."""
        triangular = self.request.systems > 0 and self.is_triangular()
        return "column" if triangular or self.options.pivoting == "partial" else "auto"

    def for_fronts(self) -> list[Any]:
        """An analysis for fronts with every ordering worth considering.

        If the analysis for the processor has found fronts by an ordering other than minimum degree, only that one: the
        others would not be better.
        """
        if found := self._found_fronts():
            return self.memo("for_fronts", lambda: [found])
        kinds = {"cholesky": self.cholesky, "ldlt": self.kind == "ldlt"}
        return self._analyzed("for_fronts", _core.analyze_candidates, method="front", **kinds)

    def _found_fronts(self) -> Any:
        found = self.memo.get("for_processor")
        fits = found is not None and (found.kind, found.method) == (self.kind, "front") and found.ordering != "amd"
        return found if fits else None

    def catch_up(self) -> None:
        """Wait for the analysis in the background, unless an equivalent result exists already."""
        ahead = self.memo.get("ahead")
        if ahead is not None and not self._found_fronts():
            ahead.join()

    def for_columns(self) -> list[Any]:
        """An analysis for the columns of a device with every ordering worth considering."""
        return self._analyzed("for_columns", _core.analyze_candidates, method="column")

    def is_triangular(self) -> bool:
        """Whether LU of the matrix is the matrix itself, in some order."""
        return self.kind == "lu" and self.memo("triangular", lambda: _core.is_triangular(self.pattern.core))

    def is_singular(self) -> bool:
        """Whether an existing analysis shows that the matrix is singular for all values."""
        fronts = self.memo.get("for_fronts")
        known = (self.memo.get("for_processor"), fronts[0] if fronts else None)
        return any(core is not None and core.structural_rank < self.n for core in known)
