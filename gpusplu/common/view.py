"""An object with the attributes of another one."""

from __future__ import annotations

from typing import Any


class View:
    """Attributes of another object, except those that a subclass defines."""

    def __init__(self, viewed: Any):
        self._viewed = viewed

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._viewed, name)
