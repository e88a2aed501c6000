"""The glu engine behind the interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ...problem import Problem
from ..columns.engine import ColumnEngine
from ..columns.plan import ColumnPlan


class GluEngine(ColumnEngine):
    """Column-based right-looking LU, level by level.

    Parameters
    ----------
    **options
        `tuning` of GluProgram, for measurements and tests.
    """

    name = "glu"
    files = ("columns/column_solve.cu", "columns/glu.cu", "common/residual.cu", "common/values.cu")

    modelled: ClassVar[Mapping[str, str]] = {"schedule": "predicted_factor_seconds"}

    def __init__(self, **options: Any):
        self._options = options

    def program(self, device: Any, plan: ColumnPlan, problem: Problem, dtype: np.dtype) -> Any:
        from .program import GluProgram

        threshold = problem.options.pivot_threshold
        return GluProgram(device, plan, problem.pattern, dtype, threshold, **self._options)


ENGINE = GluEngine()
