"""Number of matrices that were factored, for tests that check that a matrix is factored once."""

from __future__ import annotations

import os
from threading import Lock


class Count:
    """A number that threads add to."""

    __slots__ = ("_lock", "value")

    def __init__(self) -> None:
        self.value = 0
        self.reset()

    def reset(self) -> None:
        """Make a new, free lock; also called in a forked child."""
        self._lock = Lock()

    def add(self, number: int = 1) -> None:
        with self._lock:
            self.value += number


#: Count of the process.
FACTORIZATIONS = Count()
os.register_at_fork(after_in_child=FACTORIZATIONS.reset)


def factorization_count() -> int:
    """Matrices that this process has factored.

    Counts new factors, refactorizations, and each system of a batch. Repeated pivoting and migrations to another engine
    belong to the call that causes them and are not counted separately.

    Returns
    -------
    int
        Only grows: take the difference of two.

    Examples
    --------
    >>> before = gs.factorization_count()
    >>> lu = gs.splu(gs.gallery.poisson(10, 10))
    >>> x, y = lu.solve(np.ones(100)), lu.solve(np.ones(100), "T")
    >>> gs.factorization_count() - before
    1
    """
    return FACTORIZATIONS.value
