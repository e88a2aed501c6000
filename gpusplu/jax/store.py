"""Factors of the values that callbacks saw, found again by what these values are.

Under a transformation a factor cannot go from one callback to another: what JAX carries are arrays, and it may evaluate
twice, drop, batch or select among them. So every callback has the values, and the factor is found by them: by a sum of
their bits at first, and then entry by entry. One that is not there any more is made again, so answers never depend on
what is remembered.

A solve that is going to be differentiated keeps its factor until the adjoint has used it. Other factors, and those that
an adjoint has used, give their memory to the next values of the pattern: a loop over new values refactors one factor.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any
from weakref import WeakSet

import numpy as np

from .. import patterns
from ..batches import splu_batch
from ..cuda.kept import BITS
from ..factor import LUFactor
from ..gradients import Factored
from ..options import DEFAULTS
from ..pipeline import factored_lu, within_memory
from ..selection.request import automatic
from .structure import Structure


class Entry:
    """A factor, and what it is found by.

    Attributes
    ----------
    key : tuple
        Group and sum of bits.
    values : ndarray
        That were factored.
    factored : Factored
    done : bool
        No adjoint is expected to need it.
    users : int
        Threads that solve with it.
    holders : WeakSet
        Objects that want it kept as long as they live.
    """

    __slots__ = ("done", "factored", "holders", "key", "nbytes", "transpose", "users", "values")

    def __init__(self, key: tuple[Hashable, ...], values: np.ndarray, factored: Factored, nbytes: int):
        self.key, self.values, self.factored, self.nbytes = key, values.copy(), factored, nbytes + values.nbytes
        self.done, self.transpose, self.users = True, False, 0
        self.holders: WeakSet[Any] = WeakSet()

    @property
    def free(self) -> bool:
        return not self.users and not self.holders

    def expect(self, transpose: bool, kept: bool) -> None:
        """Note a solve: the first one that is differentiated waits for one with the transpose."""
        if kept:
            if self.done:
                self.done, self.transpose = False, transpose
        elif transpose != self.transpose:
            self.done = True


class Store:
    """Entries within a bound of bytes, the last used last."""

    def __init__(self) -> None:
        self.entries: OrderedDict[tuple[Hashable, ...], Entry] = OrderedDict()
        self.lock = RLock()
        self.nbytes = 0

    @contextmanager
    def factor(
        self, structure: Structure, values: np.ndarray, transpose: bool = False, kept: bool = False
    ) -> Iterator[Factored]:
        """The factor of values, shape (size,) or (nbatch, size), which stays what it is inside the block.

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

    def hold(self, structure: Structure, values: np.ndarray, holder: Any) -> None:
        """Have the factor of values kept as long as an object lives; raises what `factor` does."""
        with self.lock:
            entry = self.find(structure, structure.entries(values))
            entry.expect(False, True)
            entry.holders.add(holder)

    def find(self, structure: Structure, values: np.ndarray) -> Entry:
        group = structure, values.dtype.char, values.shape
        key = *group, int(np.add.reduce(values.reshape(-1).view(BITS[values.itemsize])))
        entry = self.entries.get(key)
        if entry is not None and same_bits(entry.values, values):
            self.entries.move_to_end(key)
            return entry
        spare = self.spare(group)
        if spare is not None:
            self.forget(spare)  # before: a batch that Ctrl-C ends is of these values from then on
            try:
                spare.factored.factor.refactor(values)
            except RuntimeError:  # the factor is what it was
                self.keep(spare)
                raise
            np.copyto(spare.values, values)
            spare.key, spare.done = key, True
            return self.keep(spare)
        return self.keep(Entry(key, values, *first_factored(structure, values)))

    def spare(self, group: tuple[Hashable, ...]) -> Entry | None:
        """An entry of the group whose factor may become that of other values."""
        full = self.nbytes > patterns.STORE.max_bytes
        for entry in self.entries.values():
            if (entry.done or full) and entry.free and entry.key[:-1] == group:
                return entry
        return None

    def keep(self, entry: Entry) -> Entry:
        before = self.entries.get(entry.key)
        if before is not None:
            self.forget(before)
        self.entries[entry.key] = entry
        self.nbytes += entry.nbytes
        for old in [old for old in self.entries.values() if old is not entry and old.free]:
            if self.nbytes <= patterns.STORE.max_bytes:
                break
            self.forget(old)
        return entry

    def forget(self, entry: Entry) -> None:
        del self.entries[entry.key]
        self.nbytes -= entry.nbytes

    def clear(self) -> None:
        """Forget all but what is held or in use."""
        with self.lock:
            for entry in [entry for entry in self.entries.values() if entry.free]:
                self.forget(entry)


#: Of the process.
STORE = Store()
patterns.FORGET_ALSO.append(STORE.clear)


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
    lu, _ = within_memory(factored_lu, structure.matrix(values), DEFAULTS, automatic(), LUFactor)
    return Factored(lu, transposed=structure.transposed), lu.stats["bytes"]
