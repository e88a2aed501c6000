"""The sflu engine behind the interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..columns.engine import COLUMN_FILES, ColumnEngine
from .predict import COSTS

if TYPE_CHECKING:
    from ..columns.program import ColumnProgram


class SfluEngine(ColumnEngine):
    """Synchronization-free left-looking LU: one launch, columns by busy waiting."""

    name = "sflu"
    files = (*COLUMN_FILES, "columns/sflu.cu")
    costs = COSTS

    def program_type(self) -> type[ColumnProgram]:
        from .program import SfluProgram

        return SfluProgram


ENGINE = SfluEngine()
