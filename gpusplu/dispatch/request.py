"""From the keyword arguments about engines and devices to a `Request`."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..cost.model import REFACTORIZATIONS
from ..cuda import presence
from ..engines import registry
from ..engines.problem import Request
from ..errors import EngineUnavailableError

AUTO = "auto"
# Entries of A below which "auto" does not consider a GPU: the CPU is done before a kernel is loaded. Fewer if more
# refactorizations than by default are expected.
SMALLEST = 50_000
BY_NAME = Request(registry.DEFAULT, "requested by name")


def engine_names() -> tuple[str, ...]:
    """Values that ``engine=`` accepts."""
    return (AUTO, *registry.names())


def read_request(
    engine: str,
    device: Any = None,
    device_memory: int | None = None,
    expected_refactors: float = REFACTORIZATIONS,
    deterministic: bool = False,
) -> Request:
    """Resolve ``engine=``, ``device=``, ``device_memory=``, ``expected_refactors=`` and ``deterministic=``.

    Raises
    ------
    ValueError
        `engine` is not one of `engine_names`, `device_memory` is not positive, or `expected_refactors` is negative.
    EngineUnavailableError
        A named GPU engine or device is unavailable. Only ``"auto"`` may fall back.
    """
    if deterministic:
        return fixed(read_request(engine, device, device_memory, expected_refactors))
    if device is None and device_memory is None and expected_refactors == REFACTORIZATIONS:
        if engine == AUTO:
            return automatic()
        if engine == registry.DEFAULT:
            return BY_NAME
    if engine not in engine_names():
        raise ValueError(f"engine={engine!r} is not one of {', '.join(map(repr, engine_names()))}")
    if device_memory is not None and (isinstance(device_memory, bool) or int(device_memory) <= 0):
        raise ValueError(f"device_memory={device_memory!r} must be a positive number of bytes")
    if isinstance(expected_refactors, bool) or not 0 <= expected_refactors < float("inf"):
        raise ValueError(f"expected_refactors={expected_refactors!r} must be a number that is not negative")
    request = name_engine(engine, device)
    may_migrate = request.may_migrate and expected_refactors == REFACTORIZATIONS
    return request._replace(device_memory=device_memory, refactorizations=expected_refactors, may_migrate=may_migrate)


def name_engine(engine: str, device: Any) -> Request:
    """Resolve the engine as far as possible without a matrix."""
    if device == registry.DEFAULT or (engine != AUTO and not registry.named(engine).capabilities.on_device):
        if engine == AUTO:
            return BY_NAME
        if registry.named(engine).capabilities.on_device or device not in (None, registry.DEFAULT):
            raise EngineUnavailableError(f"engine={engine!r} does not run on device={device!r}")
        return Request(engine, "requested by name")
    if engine == AUTO and device is None:
        return automatic()
    from ..cuda import devices, several

    if several.is_several(device):
        opened = several.open_devices(device)
        if len(opened) > 1 and engine != AUTO and not registry.named(engine).capabilities.several:
            raise EngineUnavailableError(f"engine={engine!r} runs on one device; pass one of them, or another engine")
        indices = tuple(each.index for each in opened)
        return Request(
            engine,
            "" if engine == AUTO else "requested by name",
            indices[0],
            devices=indices if len(indices) > 1 else (),
        )
    index = devices.open_device(device).index
    return Request(engine, "" if engine == AUTO else "requested by name", index)


@cache
def fixed(request: Request) -> Request:
    """The request with ``deterministic=True``."""
    return request._replace(may_migrate=False, remembered=False)


def automatic() -> Request:
    """Resolve ``engine="auto"`` on this machine as far as possible without a call of the driver."""
    return _automatic(presence.no_driver(), registry.hosts())


@cache
def _automatic(missing: str, hosts: tuple[str, ...]) -> Request:
    return without_device(Request(may_migrate=not missing), missing) if missing else Request(may_migrate=True)


def without_small(request: Request, nnz: int) -> Request:
    """Resolve "auto" for matrices that are too small for a GPU."""
    often = max(request.refactorizations, REFACTORIZATIONS)
    if request.device is None and not request.reason and nnz * often < SMALLEST * REFACTORIZATIONS:
        return without_device(request, f"{nnz:,} entries are too few for a GPU to be faster")
    return request


def without_device(request: Request, reason: str) -> Request:
    """A request for "auto" without devices, which names the engine if the processor has a single one."""
    hosts = registry.hosts()
    if len(hosts) > 1:
        return request._replace(reason=reason)
    return request._replace(engine=hosts[0], reason=f"engine='auto' and {reason}")
