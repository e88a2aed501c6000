"""The GPU engines on the emulated device of tests/support."""

import sys
from pathlib import Path

from gpusplu.cuda import devices

GPU_ENGINES = ("supernodal", "glu", "sflu", "crisscross")


def use_emulated_device():
    """From now on the engines find it where they look for a device; returns what undoes that."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from support import fake_cupy
    from support.emulated_device import EmulatedDevice

    found, device, cupy = devices.open_device, EmulatedDevice(), sys.modules.get("cupy")
    devices.open_device = lambda which=None: device
    sys.modules["cupy"] = fake_cupy

    def undo():
        devices.open_device = found
        sys.modules.pop("cupy")
        if cupy is not None:
            sys.modules["cupy"] = cupy

    return undo
