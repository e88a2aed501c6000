"""Which process CUDA belongs to: nothing that a process has of it can be used by its forked children."""

from __future__ import annotations

import os

from ..errors import ON_HOST, EngineUnavailableError

_owner: int | None = None  # the process that was first to use CUDA


def use_cuda() -> None:
    """Say that this process goes on to use CUDA.

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
