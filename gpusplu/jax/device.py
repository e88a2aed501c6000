"""Implementation of the primitives with arrays on a CUDA device: factors, values and solutions stay there.

A comparison on the device shows whether a factor of given values is held, and the host must not wait for it. So a solve
relies on a prediction from earlier calls of its call site, held values or new ones, like branch prediction: it uses the
expected factor, or factors at once. The comparison is read after the host has waited for the solve, as for any solve on
a device. After a wrong prediction the missing work is done then: solutions never depend on predictions.

The first values of a pattern are copied to the host, where pivots and an engine are chosen. Determinants and their
derivatives are computed on the host, and traced index arrays are read there.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from ..common import matrix
from ..common.options import DEFAULTS
from ..cuda import devices
from ..cuda.kept import Difference
from ..dispatch import patterns
from ..dispatch.pipeline import within_memory
from ..dispatch.selection import AUTO, read_request
from ..errors import NonFiniteError, is_singular
from ..factors.batch import splu_batch
from ..factors.gradients import TRANSPOSE, Factored
from ..factors.lu import LUFactor, made_lu
from . import foreign
from .host import columns_of, each_structure, rows_of, solved
from .store import SINGLE_USE, Entry, Store
from .structure import INDEX_AXES, Structure

#: Refactorizations and solves that the choice of an engine assumes: a compiled program is usually run often.
CALLS = 1000


class Guess:
    """Predicts from earlier calls whether the values of a call site are already factored.

    After two correct predictions in a row, a single wrong one does not change the prediction.
    """

    def __init__(self) -> None:
        self._trust = 2  # from 0, new values, to 3, held ones

    @property
    def held(self) -> bool:
        return self._trust >= 2

    def learn(self, held: bool) -> None:
        self._trust = min(3, self._trust + 1) if held else max(0, self._trust - 1)


class DeviceEntry(Entry):
    """An entry with factor and values on a device.

    Attributes
    ----------
    first : tuple
        Of the first factor of the group: its analysis, and values on the host.
    written : event
        The values.
    """

    __slots__ = ("first", "written")
    first: tuple[Any, np.ndarray]
    written: Any

    def differs(self, device: Any, values: Any) -> Difference:
        """Whether other values differ from those held."""
        return Difference(device, self.written, (values, self.values))


class DeviceStore(Store):
    """Factors on devices: `solve` and `hold` do in the current stream what `factor` does on the host."""

    def solve(self, structure: Structure, values: Any, b: Any, op: str, kept: int, guess: Guess) -> Any:
        """The solution of ``op(A) x = b`` for vectors that are rows.

        Raises
        ------
        RuntimeError
            ``Factor is exactly singular``.
        NonFiniteError
        """
        device, values, transpose = devices.open_device(), entries_of(structure, values), op == "T"
        group = self.the(structure), values.dtype.char, values.shape, device.index
        trusted, differs = guess.held, None
        with self.used(self.of_group(group)[:1]) as expected:
            for entry in expected:
                differs = entry.differs(device, values)
                if trusted:
                    x = solved(entry.factored, b, op)
                    if not differs:
                        guess.learn(True)
                        entry.expect(transpose, kept)
                        return x
        if trusted and differs is not None:
            with self.used(self.of_group(group)) as entries:
                same = self.same(device, values, entries)
                guess.learn(same is not None)
                if same is not None:
                    same.expect(transpose, kept)
                    return solved(same.factored, b, op)
        made, x = self.factored(device, structure, group, values, b, op)
        made.expect(transpose, kept)
        if not trusted and differs is not None:
            guess.learn(not differs)
        return x

    def hold(self, structure: Structure, values: Any, holder: Any) -> None:
        """Keep a factor of values as long as an object lives; waits.

        Raises
        ------
        RuntimeError
            ``Factor is exactly singular``.
        NonFiniteError
        """
        device, values = devices.open_device(), entries_of(structure, values)
        group = self.the(structure), values.dtype.char, values.shape, device.index
        with self.used(self.of_group(group)) as entries:
            entry = self.same(device, values, entries)
        if entry is None:
            entry, _ = self.factored(device, structure, group, values)
        with self.lock:
            self.held_by(entry, holder)

    def of_group(self, group: tuple[Hashable, ...]) -> list[Any]:
        """Entries, the most likely matches first: the latest ones that wait for an adjoint."""
        with self.lock:
            entries = [entry for entry in reversed(self.entries.values()) if entry.key[:-1] == group]
        return sorted(entries, key=lambda entry: entry.done)

    @contextmanager
    def used(self, entries: list[Any]) -> Iterator[list[Any]]:
        """Entries with factors that do not change inside the block."""
        with self.lock:
            entries = [entry for entry in entries if self.entries.get(entry.key) is entry]
            for entry in entries:
                entry.users += 1
        try:
            yield entries
        finally:
            with self.lock:
                for entry in entries:
                    entry.users -= 1
                self.trim()

    def same(self, device: Any, values: Any, entries: list[Any]) -> Any:
        """The first of some entries that has these values, or None; waits."""
        answers = [entry.differs(device, values) for entry in entries]
        return next((entry for entry, differs in zip(entries, answers, strict=True) if not differs), None)

    def factored(
        self, device: Any, structure: Structure, group: tuple[Hashable, ...], values: Any, b: Any = None, op: str = "N"
    ) -> tuple[DeviceEntry, Any]:
        """An entry with new values, and the solution if there is a `b`."""
        with self.lock:
            replaced: Any = self.find_replaceable(group)
            if replaced is not None:
                self.forget(replaced)
        if replaced is None:
            return self.added(device, structure, group, values, b, op)
        try:
            x = factored_again(replaced.factored, values, b, op)  # if it raises, the factor is unchanged
            replaced.values[...] = values
            replaced.written = device.caller_stream().record()
            replaced.waits, replaced.swept = SINGLE_USE, False
            return replaced, x
        finally:
            with self.lock:
                self.keep(replaced)

    def added(
        self, device: Any, structure: Structure, group: tuple[Hashable, ...], values: Any, b: Any, op: str
    ) -> tuple[DeviceEntry, Any]:
        """The same with a new factor."""
        before = self.of_group(group)
        first = before[0].first if before else None
        if first is None or values.ndim == 2:
            factored, first, nbytes = within_memory(first_factored, device, structure, values, first)
            x = None if b is None else solved(factored, b, op)
        else:
            lu = within_memory(first[0].factor, first[1])
            factored, nbytes = Factored(lu, transposed=structure.transposed), lu.stats["bytes"]
            x = factored_again(factored, values, b, op)
        entry = DeviceEntry((*group, next(_numbers)), values, factored, nbytes)
        entry.first = first
        entry.written = device.caller_stream().record()
        with self.lock:
            self.keep(entry)
        return entry, x


#: Of the process, and the last parts of its keys.
STORE = DeviceStore()
_numbers = count()
patterns.FORGET_ALSO.append(STORE.clear)
patterns.COUNT_ALSO.append(STORE.cached_bytes)
atexit.register(STORE.clear)  # before CUDA is shut down


def first_factored(device: Any, structure: Structure, values: Any, first: Any) -> tuple[Factored, Any, int]:
    """A factor by an analysis on the host, which needs the values of one system there.

    Parameters
    ----------
    device : cuda.devices.Device
    structure : Structure
    values : cupy.ndarray, shape (entries,) or (nbatch, entries)
    first : tuple, optional
        Of an entry of the group before.

    Returns
    -------
    factored, first, nbytes
    """
    if values.ndim == 1:
        request = read_request(AUTO, device.index, expected_refactors=CALLS)._replace(on_device=True)
        on_host = values.get()
        lu = LUFactor(made_lu(structure.matrix(on_host), DEFAULTS, request))
        return Factored(lu, transposed=structure.transposed), (lu.symbolic, on_host), lu.stats["bytes"]
    if first is None:
        fit = ((abs(values) < np.inf) & (values != 0)).sum(axis=1)  # others may be what vmap of cond made up
        first = None, values[int(fit.argmax())].get()
    batch = splu_batch(structure.matrix(first[1]), values, device=device.index)
    return Factored(batch, transposed=structure.transposed), first, batch.stats["bytes"]


def factored_again(factored: Factored, values: Any, b: Any, op: str) -> Any:
    """Refactor and solve; without `b` refactor and wait."""
    if b is None:
        factored.factor.refactor(values)
        return factored.factor.check()
    trans = TRANSPOSE[op] if factored.transposed else op
    return rows_of(factored.factor.refactor_solve(values, columns_of(factored, b), trans), b)


def entries_of(structure: Structure, values: Any) -> Any:
    """The values that are entries, without padding."""
    if structure.kept is None:
        return values
    kept = structure.kept
    entries = values[..., kept if isinstance(kept, slice) else matrix.to_device(kept)]
    return entries if entries.flags.c_contiguous else entries.copy()


def indices_on_host(work: Callable[..., Any]) -> Callable[..., Any]:
    """``work(*arrays, structure, layout)`` for index arrays on the device, if there are such."""

    def with_indices(*arrays: Any, structure: Structure | None, layout: str, **options: Any) -> Any:
        if structure is None:
            last = 1 + len(INDEX_AXES[layout])
            arrays = arrays[0], *(array.get() for array in arrays[1:last]), *arrays[last:]
        return work(*arrays, structure=structure, layout=layout, **options)

    return with_indices


@indices_on_host
@each_structure
def solve(structure: Structure, values: Any, b: Any, *, transpose: bool, kept: int, guess: Guess) -> Sequence[Any]:
    try:
        return (STORE.solve(structure, values, b, "T" if transpose else "N", kept, guess),)
    except RuntimeError as error:
        if not isinstance(error, NonFiniteError) and not is_singular(error):  # CUDA's errors are RuntimeErrors
            raise
    x = devices.open_device().array((*values.shape[:-1], *b.shape[-2:]), b.dtype)
    x.fill(np.nan)
    return (x,)


def lower_solve(context: Any, *operands: Any, **parameters: Any) -> Sequence[Any]:
    """The lowering rule of solve: each call site has its own guess."""
    return foreign.lower(foreign.on_device, partial(solve, guess=Guess()), context, *operands, **parameters)


def lower_by_host(work: Callable[..., Any]) -> Callable[..., Any]:
    """The lowering rule of ``work(*arrays)`` of `host`, for arrays on the device."""

    def round_trip(*arrays: Any, **parameters: Any) -> list[Any]:
        return [matrix.to_device(array) for array in work(*(array.get() for array in arrays), **parameters)]

    def rule(context: Any, *operands: Any, **parameters: Any) -> Sequence[Any]:
        return foreign.lower(foreign.on_device, round_trip, context, *operands, **parameters)

    return rule
