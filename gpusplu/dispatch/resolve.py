"""Which engine runs, and why."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

from ..errors import EngineUnavailableError
from ..options import Options
from .costs import REFACTORIZATIONS, Prediction

ENGINES = ("auto", "cpu", "glu", "sflu", "crisscross", "supernodal")
# Entries of A below which "auto" does not look at a GPU: everything is done on the CPU before a kernel is loaded. Fewer
# where more refactorizations are expected than usual.
SMALLEST = 50_000
# Entries of A times refactorizations from which on "auto" mostly ends on a GPU, if CuPy is loaded.
LIKELY = 10_000_000


class Choice(NamedTuple):
    """An engine and the sentence that explain() prints about it.

    Attributes
    ----------
    engine : str
        "auto" until the matrix decides (`analyze_pattern`), among GPU engines if there is a device.
    reason : str
    device : int or None
        Number of the CUDA device.
    device_memory : int or None
        Device memory that may be used [bytes]; None for what is free.
    refactorizations : float
        How often the caller expects to refactor and solve.
    on_device : bool
        The caller's values and vectors are on a device.
    predictions : tuple of Prediction
        What was chosen by; empty where nothing had to be predicted.
    """

    engine: str
    reason: str
    device: int | None = None
    device_memory: int | None = None
    refactorizations: float = REFACTORIZATIONS
    on_device: bool = False
    predictions: tuple[Prediction, ...] = ()

    def of(
        self, engine: str, reason: str, predictions: tuple[Prediction, ...] = (), device: int | None = None
    ) -> Choice:
        """The same for an engine that was decided on."""
        return Choice(engine, reason, device, self.device_memory, self.refactorizations, self.on_device, predictions)


def choose_engine(
    engine: str,
    device: Any = None,
    device_memory: int | None = None,
    expected_refactors: float = REFACTORIZATIONS,
) -> Choice:
    """Resolve ``engine=``, ``device=``, ``device_memory=`` and ``expected_refactors=``.

    Raises
    ------
    ValueError
        `engine` is not one of `ENGINES`, `device_memory` is no number of bytes, or `expected_refactors` is negative.
    EngineUnavailableError
        A GPU engine or a device was asked for by name and cannot be had. Only ``"auto"`` may fall back.
    """
    if engine == "auto" and device is None and device_memory is None and expected_refactors == REFACTORIZATIONS:
        return automatic()
    if engine not in ENGINES:
        raise ValueError(f"engine={engine!r} is not one of {', '.join(map(repr, ENGINES))}")
    if device_memory is not None and (isinstance(device_memory, bool) or int(device_memory) <= 0):
        raise ValueError(f"device_memory={device_memory!r} must be a positive number of bytes")
    if isinstance(expected_refactors, bool) or not 0 <= expected_refactors < float("inf"):
        raise ValueError(f"expected_refactors={expected_refactors!r} must be a number that is not negative")
    choice = name_engine(engine, device)
    return choice._replace(device_memory=device_memory, refactorizations=expected_refactors)


def name_engine(engine: str, device: Any) -> Choice:
    """The engine, as far as it can be told without a matrix."""
    if engine == "cpu" or device == "cpu":
        if engine not in ("auto", "cpu") or (engine == "cpu" and device not in (None, "cpu")):
            raise EngineUnavailableError(f"engine={engine!r} does not run on device={device!r}")
        return Choice("cpu", "asked for by name")
    if engine == "auto" and device is None:
        return automatic()
    from ..kernels import launch

    index = launch.open_device(device).index
    return Choice(engine, "" if engine == "auto" else "asked for by name", index)


def automatic() -> Choice:
    """What ``engine="auto"`` means on this machine."""
    missing = no_device()
    return Choice("cpu", f"engine='auto' and {missing}") if missing else Choice("auto", "")


def without_small(choice: Choice, nnz: int) -> Choice:
    """Decide "auto" where no look at the matrix is needed."""
    if (
        choice.engine == "auto"
        and choice.device is None
        and nnz * max(choice.refactorizations, REFACTORIZATIONS) < SMALLEST * REFACTORIZATIONS
    ):
        return choice.of("cpu", f"engine='auto' and {nnz:,} entries are too few for a GPU to pay")
    return choice


def device_is_likely(choice: Choice, options: Options, nnz: int) -> bool:
    """Whether to analyse for a device before anything is analysed for the CPU engine."""
    return options.pivoting != "partial" and nnz * choice.refactorizations > LIKELY and "cupy" in sys.modules


@cache
def no_device() -> str:
    """Why no GPU can be used, found without importing CuPy; empty if one can."""
    if (find_spec("cupy") if "cupy" not in sys.modules else sys.modules["cupy"]) is None:
        return "CuPy is not installed"
    from ..kernels.process import use_cuda

    count = ctypes.c_int()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        use_cuda()
        failed = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    except (OSError, AttributeError):
        return "there is no CUDA driver"
    except EngineUnavailableError as error:
        return str(error)
    return "there is no CUDA device" if failed or not count.value else ""
