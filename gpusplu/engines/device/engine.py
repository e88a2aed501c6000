"""What the engines on a GPU have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from ...cost.calibration import costs_of
from ...cost.features import factor_features, loading, start_features
from ...cost.model import Estimate, seconds
from ...cuda import devices, several
from ...cuda.nvrtc import kernel_kind
from ...cuda.presence import is_loaded
from ..interface import Analysis, Engine
from ..problem import Problem
from ..processor import cpu_factor

# Kernels are compiled once per machine: the part of it that is charged to the first matrix.
COMPILE_SHARE = 0.1
# Of single precision over double: 2 on devices for computing, 32 and 64 on those for graphics.
SLOW_DOUBLE = 8


class DeviceEngine(Engine):
    """An engine with factors that a program makes on a device.

    Attributes
    ----------
    files : tuple of str
        Kernel files without which nothing runs.
    """

    files: ClassVar[tuple[str, ...]]

    def device(self, problem: Problem) -> Any:
        """The requested device, opened."""
        return devices.open_device(problem.request.device)

    def devices(self, problem: Problem) -> tuple[Any, ...]:
        """All requested devices, opened."""
        request = problem.request
        return several.open_devices(request.devices) if request.devices else (self.device(problem),)

    def lower_bound(self, problem: Problem) -> float:
        """Work before the first factorization: import of CuPy, missing kernels, an analysis, a factor."""
        costs, core = costs_of(), problem.for_processor()
        start = seconds(costs["start.factor"], start_features(core, problem.itemsize))
        start += seconds(costs["start.analyze"], factor_features(core))
        if is_loaded():
            return start + self.first_use(self.device(problem), problem)
        return start + loading(costs)

    def first_use(self, device: Any, problem: Problem) -> float:
        """Share of the compilation of kernels that the first matrix is charged, 0 if they are in the cache [s]."""
        if device.compiled(self.files, problem.dtype.char, kernel_kind(problem.kind, problem.options.hermitian)):
            return 0.0
        return COMPILE_SHARE * seconds(costs_of()["start.compile"], {"call": 1.0})

    def within(self, problem: Problem, device: Any, needed: int, estimate: Estimate) -> Estimate:
        """The estimate with the cost of a first use, or a note that there is less memory than the bytes `needed`."""
        free = devices.usable_bytes(device, problem.request.device_memory)
        single = "device memory is insufficient" if needed > free else ""
        if device.double_ratio >= SLOW_DOUBLE:
            single = f"single precision is {device.double_ratio} times as fast on this device"
        if needed > free:
            note = f"{needed:,} bytes of device memory are needed, {free:,} may be used"
            return Estimate(self.name, note=note, device_bytes=needed, prefers_single=single)
        first_use = self.first_use(device, problem)
        return estimate._replace(first_use=first_use, device_bytes=needed, prefers_single=single)

    def factor(self, problem: Problem, analysis: Analysis, values: np.ndarray) -> Any:
        """Factor on the device; the CPU engine takes structurally singular matrices, and raises the error."""
        if not 0 < problem.n == analysis.core.structural_rank:
            return cpu_factor(analysis.core, problem.pattern, values, problem.options)
        return self.factor_on_device(problem, analysis, values)

    @abstractmethod
    def factor_on_device(self, problem: Problem, analysis: Analysis, values: np.ndarray) -> Any:
        """Plan, if the analysis has no plan; upload; factor."""
