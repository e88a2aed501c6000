"""A factor on several devices, and its recovery when a device, or a copy between devices, fails.

Kernels of an interrupted call have changed counters that others wait for, so their memory is allocated again, and
the previous values are factored again: on the devices or, if that fails too, by the CPU engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from ...cuda.several import failures
from ...errors import DeviceFailedError
from ..device.call import CommandGraphs
from ..device.factor import HELD, MUST_RESTORE, PENDING, SOLVES, STATUS_REQUESTED, DeviceFactor


class SharedFactor(DeviceFactor):
    """LU, Cholesky or LDL^T factor of one matrix on several devices."""

    _stale = False  # the graphs can no longer be used

    @property
    def _devices(self) -> tuple[Any, ...]:
        program: Any = self._commands.program
        return tuple(program.devices)

    def refactor(
        self, values: Any, source: np.ndarray | None = None, checked: bool = False, *, wait: bool = True
    ) -> int:
        given = source is not None or type(values) is self.device_array
        with self._device, self._lock, self._guarded(wait, values, given):
            self._reset()
            return super().refactor(values, source, checked, wait=wait)

    def solve(self, b: Any, trans: int = 0, out: Any = None, *, wait: bool = True) -> Any:
        with self._device, self._lock, self._guarded(wait):
            if not wait:
                self._reset()
            return super().solve(b, trans, out, wait=wait)

    def refactor_solve(self, values: Any, b: Any, trans: int = 0, out: Any = None, *, wait: bool = True) -> Any:
        with self._device, self._lock, self._guarded(wait, values, True):
            self._reset()
            return super().refactor_solve(values, b, trans, out, wait=wait)

    def check(self) -> float:
        with self._device, self._lock, self._guarded():
            return super().check()

    @contextmanager
    def _guarded(self, wait: bool = True, values: Any = None, given: bool = False) -> Iterator[None]:
        """Go back to the values held if devices fail; `given`: `values` are in the caller's order."""
        if not wait and self._device.caller_stream().captured:
            raise RuntimeError("calls of a factor on several devices cannot be captured")
        try:
            with failures(self._devices):
                yield
        except DeviceFailedError:
            if not self._stale:
                self._go_back(values, given)
            raise

    def _go_back(self, values: Any, given: bool) -> None:
        """Restore the previous values, without the graphs."""
        buffers, previous = self._commands.buffers, self._state in (PENDING, STATUS_REQUESTED, MUST_RESTORE)
        held = self._commands.values()
        if values is not None:
            new = np.asarray(values.get() if hasattr(values, "get") else values)
            previous = np.array_equal(self._pattern.gather(new) if given else new, held)
        if previous:
            held = self._commands.fetched(buffers.previous, held)
        self._state, self._unchecked = HELD, False
        self._host_is_stale()
        self._captured, self._stale = (), True
        program, allowed = self._commands.program, self._device_memory
        with suppress(Exception):  # ignore errors of the devices: the CPU engine continues
            self._commands = CommandGraphs(program, allowed)
            stream = self._commands.begin()
            self._commands.send(stream, self._commands.buffers.values.pointer, held)
            with failures(self._devices):
                self._found = self._commands.factor_now(stream)
            self._accept(held)
            self._stale = False
        if self._stale:
            self._make_cpu(held)
            self._host = SOLVES

    def _reset(self) -> None:
        """New memory and graphs, if the previous ones cannot be used."""
        if self._stale:
            self._commands = CommandGraphs(self._commands.program, self._device_memory)
            self._commands.send(self._commands.begin(), self._commands.buffers.values.pointer, self._cpu.values())
            self._stale = False
