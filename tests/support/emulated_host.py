"""Several emulated devices of one host, each with a memory of its own.

What a kernel or a copy is given is checked: an address in another device's memory is an error where the devices cannot
reach each other. Commands of a device may be given while it is the current one only.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from gpusplu.cuda import devices
from gpusplu.errors import EngineUnavailableError

from .emulated_device import EmulatedDevice


class Current(threading.local):
    def __init__(self) -> None:
        self.stack: list[EmulatedDevice] = []


class EmulatedHost:
    """Parameters: multiprocessors of each device, memory of each, and whether they reach each other.

    Attributes
    ----------
    broken : set of int
        Devices to and from which no copy succeeds.
    gone : set of int
        Devices that cannot be used any more.
    """

    def __init__(self, multiprocessors: Sequence[int], memory_bytes: int | Sequence[int] = 1 << 30, peers: bool = True):
        sizes = [memory_bytes] * len(multiprocessors) if isinstance(memory_bytes, int) else memory_bytes
        self.devices = [
            EmulatedDevice(size, multiprocessors=count, index=k, host=self)
            for k, (size, count) in enumerate(zip(sizes, multiprocessors, strict=True))
        ]
        self.peers, self.broken, self.gone = peers, set(), set()
        self._connected: set[tuple[int, int]] = set()
        self._current = Current()

    def open_device(self, which: Any = None) -> EmulatedDevice:
        index = 0 if which is None else which
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"device must be a number, a cupy.cuda.Device or None, not {which!r}")
        if not 0 <= index < len(self.devices) or index in self.gone:
            raise EngineUnavailableError(f"device={index} does not exist: {len(self.devices)} CUDA devices are visible")
        return self.devices[index]

    def install(self, monkeypatch: Any) -> EmulatedHost:
        """Be what `gpusplu.cuda.devices` finds."""
        monkeypatch.setattr(devices, "open_device", self.open_device)
        monkeypatch.setattr(devices, "count_devices", lambda: len(self.devices))
        return self

    # ---- what devices ask

    def enter(self, device: EmulatedDevice) -> None:
        self._current.stack.append(device)

    def leave(self) -> None:
        self._current.stack.pop()

    def is_current(self, device: EmulatedDevice) -> bool:
        return bool(self._current.stack) and self._current.stack[-1] is device

    def connect(self, device: EmulatedDevice, other: EmulatedDevice) -> bool:
        if self.peers:
            self._connected.add((device.index, other.index))
        return self.peers

    def _owner(self, address: int) -> EmulatedDevice | None:
        return next((device for device in self.devices if device.owns(address)), None)

    def check_reach(self, device: EmulatedDevice, addresses: Iterable[int], what: str) -> None:
        """Of kernels: memory of the device, of the host, or of one that it was connected to."""
        self.check_there([device])
        for owner in filter(None, map(self._owner, addresses)):
            connected = owner is device or (device.index, owner.index) in self._connected
            assert connected, f"{what} on device {device.index} was given memory of device {owner.index}"

    def check_copy(self, device: EmulatedDevice, to: int, source: int) -> None:
        ends = [owner for owner in map(self._owner, (to, source)) if owner is not None]
        self.check_there([device, *ends])
        if len(ends) == 2 and ends[0] is not ends[1]:
            reached = {tuple(end.index for end in ends), tuple(end.index for end in reversed(ends))}
            assert reached & self._connected, f"device {ends[1].index} does not reach device {ends[0].index}"
            if self.broken & {end.index for end in ends}:
                raise RuntimeError("cudaErrorPeerAccessUnsupported: peer access is not supported between these devices")

    def check_there(self, used: Iterable[EmulatedDevice]) -> None:
        for device in used:
            if device.index in self.gone:
                raise RuntimeError("cudaErrorDeviceUnavailable: CUDA-capable device(s) is/are busy or unavailable")
