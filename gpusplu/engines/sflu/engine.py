"""The sflu engine behind the interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..columns.engine import COLUMN_FILES, ColumnEngine
from ..interface import Analysis
from ..problem import Problem

if TYPE_CHECKING:
    from ..columns.plan import LuPattern


class SfluEngine(ColumnEngine):
    """Synchronization-free left-looking LU: one launch, columns by busy waiting."""

    name = "sflu"
    files = (*COLUMN_FILES, "columns/sflu.cu")
    capabilities = ColumnEngine.capabilities._replace(symbolic_phases=("host", "device"))

    def unsupported(self, problem: Problem) -> str:
        reason = super().unsupported(problem)
        if reason or problem.options.symbolic == "host":
            return reason
        from . import symbolic

        return symbolic.unsupported(self.device(problem), problem.n)

    def columns(self, problem: Problem, row_perm: np.ndarray, col_perm: np.ndarray) -> LuPattern | None:
        if problem.options.symbolic == "host":
            return None
        from .symbolic import lu_pattern

        return lu_pattern(self.device(problem), problem.pattern.ptr, problem.pattern.ind, row_perm, col_perm)

    def describe(self, analysis: Analysis, stats: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [("symbolic", "L + U were found on the device")] if stats.get("symbolic") == "device" else []


ENGINE = SfluEngine()
