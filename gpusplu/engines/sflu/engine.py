"""The sflu engine behind the interface."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...problem import Problem
from ..columns.engine import ColumnEngine
from ..columns.plan import ColumnPlan


class SfluEngine(ColumnEngine):
    """Synchronization-free left-looking LU: one launch, columns by busy waiting.

    Parameters
    ----------
    **options
        `tuning` of SfluProgram, for measurements and tests.
    """

    name = "sflu"
    files = ("columns/column_solve.cu", "columns/sflu.cu", "common/residual.cu", "common/values.cu")
    costs = {  # noqa: RUF012 (never changed)
        "sflu.plan": {"call": 3e-5, "rows": 2.5e-7, "fill": 1e-7, "flops": 1e-12},
        # A level of the whole pattern costs about a hop between two blocks, 0.84 us, and less where blocks own several.
        "sflu.refactor": {"call": 1.9e-5, "levels": 1.2e-6, "fill": 1.4e-10, "flops": 4.6e-12},
        "sflu.solve": {"call": 2.3e-5, "levels": 9.6e-7, "fill": 3.9e-10},
    }

    def __init__(self, **options: Any):
        self._options = options

    def program(self, device: Any, plan: ColumnPlan, problem: Problem, dtype: np.dtype) -> Any:
        from .program import SfluProgram

        threshold = problem.options.pivot_threshold
        return SfluProgram(device, plan, problem.pattern, dtype, threshold, **self._options)


ENGINE = SfluEngine()
