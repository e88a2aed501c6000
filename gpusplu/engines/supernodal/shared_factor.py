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
from ..device.factor import DeviceFactor
from ..device.recorded import Recorded


class SharedFactor(DeviceFactor):
    """LU, Cholesky or LDL^T factor of one matrix on several devices."""

    _stale = False  # the recorded graphs can no longer be used

    @property
    def _devices(self) -> tuple[Any, ...]:
        program: Any = self._recorded.program
        return tuple(program.devices)

    def refactor(self, values: Any, source: np.ndarray | None = None, checked: bool = False) -> int:
        with self._device, self._lock, self._guarded(values, source):
            self._reset()
            return super().refactor(values, source, checked)

    def solve(self, b: Any, trans: int = 0) -> Any:
        with self._device, self._lock, self._guarded():
            return super().solve(b, trans)

    def refactor_solve(self, values: Any, b: Any, trans: int = 0) -> Any:
        with self._device, self._lock, self._guarded(values, self._pattern):
            self._reset()
            return super().refactor_solve(values, b, trans)

    def check(self) -> float:
        with self._device, self._lock, self._guarded():
            return super().check()

    def _enqueue(self, what: str, *key: int, values: Any = None, b: Any = None, x: Any = None) -> None:
        with self._device, self._lock, self._guarded(values, self._pattern):
            if self._device.caller_stream().captured:
                raise RuntimeError("calls of a factor on several devices cannot be captured")
            self._reset()
            super()._enqueue(what, *key, values=values, b=b, x=x)

    @contextmanager
    def _guarded(self, values: Any = None, given: Any = None) -> Iterator[None]:
        """Go back to the values held if devices fail; `given`: `values` are the caller's, in the caller's order."""
        try:
            with failures(self._devices):
                yield
        except DeviceFailedError:
            if not self._stale:
                self._go_back(values, given is not None)
            raise

    def _go_back(self, values: Any, given: bool) -> None:
        """Restore the previous values, without the recorded graphs."""
        buffers, previous = self._recorded.buffers, self._pending or self._undo
        held = self._recorded.values()
        if values is not None:
            new = np.asarray(values.get() if hasattr(values, "get") else values)
            previous = np.array_equal(self._pattern.gather(new) if given else new, held)
        if previous:
            held = self._recorded._fetched(buffers.previous, held)
        self._pending = self._unchecked = self._on_cpu = self._cpu_current = False
        self._giving = self._undo = self._status_requested = False
        self._captured, self._stale = (), True
        program, allowed = self._recorded.program, self._device_memory
        with suppress(Exception):  # ignore errors of the devices: the CPU engine continues
            self._recorded = Recorded(program, allowed)
            stream = self._recorded.begin()
            self._recorded.send(stream, self._recorded.buffers.values.pointer, held)
            with failures(self._devices):
                self._found = self._recorded.factor_now(stream)
            self._accept(held)
            self._stale = False
        if self._stale:
            self._make_cpu(held)
            self._on_cpu = True

    def _reset(self) -> None:
        """New memory and graphs, if the previous ones cannot be used."""
        if self._stale:
            self._recorded = Recorded(self._recorded.program, self._device_memory)
            self._recorded.send(self._recorded.begin(), self._recorded.buffers.values.pointer, self._cpu.values())
            self._stale = False
