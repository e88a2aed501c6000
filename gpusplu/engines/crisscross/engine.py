"""The crisscross engine behind the interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...common.stats import show
from ..columns.engine import COLUMN_FILES, ColumnEngine
from ..interface import Analysis


class CrisscrossEngine(ColumnEngine):
    """Columns by busy waiting up to a division point, and a dense trailing block after it."""

    name = "crisscross"
    files = (*COLUMN_FILES, "columns/crisscross.cu")
    modelled: ClassVar[Mapping[str, str]] = {"sparse": "predicted_sparse_seconds", "dense": "predicted_dense_seconds"}

    def describe(self, analysis: Analysis, stats: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The division of the columns, and the predictions for both parts."""
        if "division" not in stats:
            return []
        parts = (f"{stats[f'predicted_{part}_seconds'] * 1e6:.0f} us {part}" for part in ("sparse", "dense"))
        trailing = stats["n"] - stats["division"]
        columns = f"{show(stats['division'])} sparse columns, a dense trailing block of {show(trailing)}"
        return [("division", f"{columns}; predicted {' and '.join(parts)}")]


ENGINE = CrisscrossEngine()
