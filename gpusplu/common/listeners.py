"""Log output: to handlers of the logger "gpusplu", and to standard output for callers that pass ``verbose=``.

Usually logs are disabled. Then a phase costs one call of `log_enabled`; texts are formatted only after it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..typing import Progress

LOG = logging.getLogger("gpusplu")
LOG.addHandler(logging.NullHandler())

#: Log levels: once per factor, once per refactorization or solve, and deviations from the request.
SUMMARY, EACH, UNASKED = logging.INFO, logging.DEBUG, logging.WARNING
#: Least log level by ``verbose=``.
LEVELS = (logging.CRITICAL + 1, SUMMARY, EACH)


class Caller(NamedTuple):
    """Log level and progress that a caller requests.

    Attributes
    ----------
    level : int
        Least log level that is printed.
    progress : Progress
    """

    level: int = LEVELS[0]
    progress: Progress = None


NOBODY = Caller()
_caller: ContextVar[Caller] = ContextVar("gpusplu_caller", default=NOBODY)
caller = _caller.get


def read_caller(verbose: Any, progress: Any) -> Caller:
    """Read ``verbose=`` and ``progress=``.

    Raises
    ------
    ValueError
        `verbose` is negative or not an integer.
    TypeError
        `progress` is neither a truth value nor None nor callable.
    """
    if not isinstance(verbose, int) or verbose < 0:
        raise ValueError(f"verbose={verbose!r} must be 0, 1 or 2")
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise TypeError(f"progress={progress!r} must be True, False, None or a function of phase, done and total")
    return Caller(LEVELS[min(verbose, len(LEVELS) - 1)], progress)


@contextmanager
def log_context(one: Caller) -> Iterator[None]:
    """Log for this caller inside the block, in this thread."""
    token = _caller.set(one)
    try:
        yield
    finally:
        _caller.reset(token)


def log_enabled(level: int = SUMMARY) -> bool:
    """Whether logs of this level are enabled."""
    return level >= _caller.get().level or LOG.isEnabledFor(level)


def tell(
    text: str, level: int = SUMMARY, *, phase: str = "", seconds: float | None = None, predicted: Any = None
) -> None:
    """Log a line; records of the logger have the numbers as attributes."""
    if level >= _caller.get().level:
        print(f"gpusplu: {text}", flush=True)
    if LOG.isEnabledFor(level):
        LOG.log(level, text, extra={"phase": phase, "seconds": seconds, "predicted": predicted})
