"""The process that uses CUDA: forked children cannot use its CUDA state."""

from __future__ import annotations

import os

from ..errors import ON_HOST, EngineUnavailableError

_owner: int | None = None  # the first process that used CUDA


def use_cuda() -> None:
    """Record that this process uses CUDA.

    Raises
    ------
    EngineUnavailableError
        It was forked from one that did.
    """
    global _owner
    if _owner is None:
        _owner = os.getpid()
    elif _owner != os.getpid():
        raise EngineUnavailableError(
            "this process was forked from one that uses CUDA, which does not survive a fork; start processes by "
            f"'spawn' or 'forkserver', or factor here with {ON_HOST}"
        )


def is_child() -> bool:
    """Whether this process was forked from one that uses CUDA."""
    return _owner not in (None, os.getpid())
