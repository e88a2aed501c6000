"""Cache of the factors of callbacks, with the values of the matrices as keys.

Under a transformation a callback cannot pass a factor to another: JAX carries arrays, and it may evaluate twice, drop,
batch or select among them. So every callback gets the values, and they identify the factor: by a sum of their bits
first, and then entry by entry. A dropped factor is made again, so solutions never depend on the cache.

A solve that will be differentiated keeps its factor until the adjoint has used it. The memory of other factors, and of
those that an adjoint has used, is reused for the next values of the pattern: a loop over new values refactors one
factor. Factors that no later call is expected to use are freed, except one of each pattern, as soon as no object holds
them. Factors that wait for an adjoint, which may never come, and factors that adjoints have used, which the next sweep
through a loop needs in the same number, are bounded in bytes (`cache_limit`) and in number (`MOST`).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, finalize, ref

import numpy as np

from ..common.options import DEFAULTS
from ..cuda.kept import BITS
from ..dispatch import patterns
from ..dispatch.selection import automatic
from ..factors.batch import splu_batch
from ..factors.gradients import Factored
from ..factors.lu import LUFactor, made_lu
from .structure import Structure

# Expected solves after a solve: none; others with the same values, because a traced `Factorized` cannot hold its
# factor; the adjoint.
SINGLE_USE, AGAIN, ADJOINT = 0, 1, 2
# Limits of factors that no object holds: per pattern, for `ADJOINT` over all patterns.
MOST = {SINGLE_USE: 1, AGAIN: 4, ADJOINT: 1024}
# Objects and small arrays of a factor that its own count leaves out, measured as resident memory of 1,000 factors.
OVERHEAD = 16 << 10  # bytes


class Lock:
    """A reentrant lock that knows whether the current thread holds it."""

    def __init__(self) -> None:
        self._lock, self._depth = RLock(), 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        self._lock.release()

    def if_idle(self, work: Callable[[], None]) -> None:
        """``work()``, unless some thread has the lock, this one included: it is called by the garbage collector."""
        if self._lock.acquire(blocking=False):
            try:
                if not self._depth:
                    with self:
                        work()
            finally:
                self._lock.release()


class Entry:
    """A factor and its key.

    Attributes
    ----------
    key : tuple
        Group and sum of bits.
    values : ndarray
        That were factored.
    factored : Factored
    waits : int
        `SINGLE_USE`, `AGAIN` or `ADJOINT`: for what it is kept.
    swept : bool
        An adjoint has used it. A next sweep through as many values needs as many factors.
    users : int
        Threads that solve with it.
    holders : WeakSet
        The entry is kept while one of these objects exists.
    """

    __slots__ = ("factored", "holders", "key", "nbytes", "swept", "transpose", "users", "values", "waits")

    def __init__(self, key: tuple[Hashable, ...], values: np.ndarray, factored: Factored, nbytes: int):
        self.key, self.values, self.factored = key, values.copy(), factored
        self.nbytes = nbytes + values.nbytes + OVERHEAD
        self.waits, self.swept, self.transpose, self.users = SINGLE_USE, False, False, 0
        self.holders: WeakSet[Any] = WeakSet()

    @property
    def free(self) -> bool:
        return not self.users and not self.holders

    @property
    def done(self) -> bool:
        """Whether no later call is expected to need it."""
        return self.waits == SINGLE_USE

    def expect(self, transpose: bool, kept: int) -> None:
        """Note a solve: the first one that is differentiated waits for one with the transpose."""
        if kept > self.waits:
            self.waits, self.transpose = kept, transpose
        elif kept == SINGLE_USE and transpose != self.transpose:
            self.swept = self.swept or self.waits == ADJOINT
            self.waits = SINGLE_USE


class Store:
    """Entries within a limit of bytes, the most recently used last."""

    def __init__(self) -> None:
        self.entries: OrderedDict[tuple[Hashable, ...], Entry] = OrderedDict()
        self.lock = Lock()
        self.nbytes = 0
        self.structures: WeakKeyDictionary[Structure, ref[Structure]] = WeakKeyDictionary()

    @contextmanager
    def factor(
        self, structure: Structure, values: np.ndarray, transpose: bool = False, kept: int = SINGLE_USE
    ) -> Iterator[Factored]:
        """The factor of values, shape (size,) or (nbatch, size), which does not change inside the block.

        Raises
        ------
        RuntimeError
            ``Factor is exactly singular``.
        NonFiniteError
        """
        with self.lock:
            entry = self.find(structure, structure.entries(values))
            entry.expect(transpose, kept)
            entry.users += 1
        try:
            yield entry.factored
        finally:
            with self.lock:
                entry.users -= 1
                self.trim()

    def hold(self, structure: Structure, values: np.ndarray, holder: Any) -> None:
        """Keep the factor of values as long as an object lives; raises the errors of `factor`."""
        with self.lock:
            entry = self.find(structure, structure.entries(values))
            self.held_by(entry, holder)

    def held_by(self, entry: Entry, holder: Any) -> None:
        """Keep an entry while an object exists; when the object is deleted, free what need not be kept."""
        finalize(holder, self.lock.if_idle, self.trim).atexit = False  # before: what is added last goes first
        entry.holders.add(holder)

    def the(self, structure: Structure) -> Structure:
        """The one object that stands for all equal structures: entries do not keep copies."""
        known = self.structures.get(structure)
        found = None if known is None else known()
        if found is None:
            found, self.structures[structure] = structure, ref(structure)
        return found

    def find(self, structure: Structure, values: np.ndarray) -> Entry:
        group = self.the(structure), values.dtype.char, values.shape
        key = *group, int(np.add.reduce(values.reshape(-1).view(BITS[values.itemsize])))
        entry = self.entries.get(key)
        if entry is not None and same_bits(entry.values, values):
            self.entries.move_to_end(key)
            return entry
        replaced = self.find_replaceable(group)
        if replaced is not None:
            self.forget(replaced)  # before: a batch that Ctrl-C ends is of these values from then on
            try:
                replaced.factored.factor.refactor(values)
            except RuntimeError:  # the factor is what it was
                self.keep(replaced)
                raise
            np.copyto(replaced.values, values)
            replaced.key, replaced.waits, replaced.swept = key, SINGLE_USE, False
            return self.keep(replaced)
        return self.keep(Entry(key, values, *first_factored(group[0], values)))

    def find_replaceable(self, group: tuple[Hashable, ...]) -> Entry | None:
        """An entry of the group with a factor that may be refactored with other values."""
        full = self.nbytes > patterns.STORE.max_bytes
        free = [entry for entry in self.entries.values() if entry.free and entry.key[:-1] == group]
        again = [entry for entry in free if entry.waits == AGAIN]
        done = (
            free if full else [entry for entry in free if entry.done] or again[: max(0, len(again) + 1 - MOST[AGAIN])]
        )
        return done[0] if done else None

    def keep(self, entry: Entry) -> Entry:
        before = self.entries.get(entry.key)
        if before is not None:
            self.forget(before)
        self.entries[entry.key] = entry
        self.nbytes += entry.nbytes
        self.trim(entry)
        return entry

    def trim(self, last: Entry | None = None) -> None:
        """Drop entries that need not be kept, except `last`: entries beyond the numbers that may wait, and others while
        there are too many bytes; the first used first."""
        seen: Counter[Hashable] = Counter()
        free = [entry for entry in reversed(self.entries.values()) if entry is not last and entry.free]
        if last is not None and last.waits != ADJOINT:
            seen[last.key[:-1], last.waits] = 1
        kept = []
        for entry in free:
            sweep = entry.waits == ADJOINT or entry.swept
            group = ADJOINT if sweep else (entry.key[:-1], entry.waits)
            seen[group] += 1
            if seen[group] > MOST[ADJOINT if sweep else entry.waits]:
                self.forget(entry)
            else:
                kept.append(entry)
        while len(kept) > (last is None) and self.nbytes > patterns.STORE.max_bytes:
            self.forget(kept.pop())

    def cached_bytes(self) -> int:
        """Of the factors that no object of the caller's holds."""
        with self.lock:
            return sum(entry.nbytes for entry in self.entries.values() if not entry.holders)

    def forget(self, entry: Entry) -> None:
        del self.entries[entry.key]
        self.nbytes -= entry.nbytes

    def clear(self) -> None:
        """Drop all entries that are not held or in use."""
        with self.lock:
            for entry in [entry for entry in self.entries.values() if entry.free]:
                self.forget(entry)


#: Of the process.
STORE = Store()
patterns.FORGET_ALSO.append(STORE.clear)
patterns.COUNT_ALSO.append(STORE.cached_bytes)


def same_bits(kept: np.ndarray, values: np.ndarray) -> bool:
    """Whether two contiguous arrays of one shape and dtype are the same, NaN and the signs of zeros included."""
    bits = BITS[values.itemsize]
    one, other = kept.reshape(-1).view(bits), values.reshape(-1).view(bits)
    return np.array_equal(one[:8], other[:8]) and np.array_equal(one, other)


def first_factored(structure: Structure, values: np.ndarray) -> tuple[Factored, int]:
    """A new factor of entries, shape (entries,) or (nbatch, entries), and its size [bytes]."""
    if values.ndim == 2:
        guide = (np.isfinite(values) & (values != 0)).sum(axis=1).argmax()  # others may be what vmap of cond made up
        batch = splu_batch(structure.matrix(values[guide]), values)
        predicted = 2 * batch.symbolic.lnz * values.itemsize * values.shape[0]
        return Factored(batch, transposed=structure.transposed), batch.stats["bytes"] or predicted
    lu = LUFactor(made_lu(structure.matrix(values), DEFAULTS, automatic()))
    # the factor's own count leaves out its values, and those of the factorization before
    return Factored(lu, transposed=structure.transposed), lu.stats["bytes"] + 2 * values.nbytes
