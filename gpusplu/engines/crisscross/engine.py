"""The crisscross engine behind the interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ...problem import Problem
from ...stats import show
from ..columns.engine import ColumnEngine
from ..columns.plan import ColumnPlan


class CrisscrossEngine(ColumnEngine):
    """Columns by busy waiting up to a division point, and a dense trailing block behind it.

    Parameters
    ----------
    **options
        `division` and `tuning` of CrisscrossProgram, for measurements and tests.
    """

    name = "crisscross"
    files = ("columns/column_solve.cu", "columns/crisscross.cu", "common/residual.cu", "common/values.cu")

    modelled: ClassVar[Mapping[str, str]] = {"sparse": "predicted_sparse_seconds", "dense": "predicted_dense_seconds"}

    def __init__(self, **options: Any):
        self._options = options

    def program(self, device: Any, plan: ColumnPlan, problem: Problem, dtype: np.dtype) -> Any:
        from .program import CrisscrossProgram

        threshold = problem.options.pivot_threshold
        return CrisscrossProgram(device, plan, problem.pattern, dtype, threshold, **self._options)

    def explain(self, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Where the columns are divided, and what was predicted for both parts."""
        if "division" not in facts:
            return []
        parts = (f"{facts[f'predicted_{part}_seconds'] * 1e6:.0f} us {part}" for part in ("sparse", "dense"))
        trailing = facts["n"] - facts["division"]
        columns = f"{show(facts['division'])} sparse columns, a dense corner of {show(trailing)}"
        return [("division", f"{columns}; predicted {' and '.join(parts)}")]


ENGINE = CrisscrossEngine()
