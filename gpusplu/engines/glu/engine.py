"""The glu engine behind the interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..columns.engine import COLUMN_FILES, ColumnEngine
from .predict import COSTS

if TYPE_CHECKING:
    from ..columns.program import ColumnProgram


class GluEngine(ColumnEngine):
    """Column-based right-looking LU, level by level."""

    name = "glu"
    files = (*COLUMN_FILES, "columns/glu.cu")
    costs = COSTS

    def program_type(self) -> type[ColumnProgram]:
        from .program import GluProgram

        return GluProgram


ENGINE = GluEngine()
