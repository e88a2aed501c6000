"""The glu engine behind the interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ..columns.engine import COLUMN_FILES, ColumnEngine


class GluEngine(ColumnEngine):
    """Column-based right-looking LU, level by level."""

    name = "glu"
    files = (*COLUMN_FILES, "columns/glu.cu")
    modelled: ClassVar[Mapping[str, str]] = {"schedule": "predicted_factor_seconds"}


ENGINE = GluEngine()
