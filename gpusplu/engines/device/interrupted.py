"""Calls that were interrupted: the next call waits for the work that they submitted to the devices."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ...cuda.several import failures
from ...errors import DeviceFailedError


class Interrupted:
    """Whether a signal or an error interrupted a call that uses a factor; each such call enters this context.

    Kernels of such a call may still run, and read and write page-locked memory that the next call uses too.
    """

    def __init__(self, devices: Sequence[Any]):
        self._devices, self._cut = tuple(devices), False

    def __enter__(self) -> None:
        if self._cut and not self._devices[0].caller_stream().captured:
            wait_for_all(self._devices)
            self._cut = False

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self._cut = True

    def keep(self, memory: Any) -> None:
        """Free the memory of a factor that is no longer used, once nothing runs on its devices."""
        if self._cut:
            keep_while_busy(self._devices, memory)


@contextmanager
def outliving(device: Any, memory: Any) -> Iterator[None]:
    """If the block is interrupted, keep `memory` until the device is done with it."""
    try:
        yield
    except BaseException:
        keep_while_busy([device], memory)
        raise


def keep_while_busy(devices: Sequence[Any], memory: Any) -> None:
    """Hold `memory` until the devices have completed their work; waits only during interpreter shutdown."""
    held = [memory]

    def wait() -> None:
        with suppress(Exception):
            wait_for_all(devices)
        held.clear()

    if sys.is_finalizing():  # a thread that is started now never runs, and Python before 3.12 waits for it to begin
        wait()
    else:
        threading.Thread(target=wait, name="gpusplu waits", daemon=True).start()


def wait_for_all(devices: Sequence[Any]) -> None:
    """Wait for all work on these devices; a device that has failed has none."""
    for device in devices:
        with suppress(DeviceFailedError), failures([device]):
            device.synchronize()
