"""The request of a caller for engines and devices, and the choice of an engine from it, a matrix, and predictions."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from .. import _core
from ..cost.calibration import costs_of
from ..cost.features import loading
from ..cost.model import REFACTORIZATIONS, Estimate, fastest
from ..cuda import presence
from ..engines import registry
from ..engines.interface import Analysis, Engine
from ..engines.problem import Problem, Request
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

    opened = several.open_devices(device) if several.is_several(device) else (devices.open_device(device),)
    if len(opened) > 1 and engine != AUTO and not registry.named(engine).capabilities.several:
        raise EngineUnavailableError(f"engine={engine!r} runs on one device; pass one of them, or another engine")
    indices, reason = tuple(each.index for each in opened), "" if engine == AUTO else "requested by name"
    return Request(engine, reason, indices[0], devices=indices if len(indices) > 1 else ())


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


MARGIN = 0.9  # a device engine has to be faster than this share of the seconds predicted on the processor
# Entries of A times refactorizations from which on "auto" mostly chooses a GPU, if CuPy is loaded.
LIKELY = 10_000_000
# Entries of A from which on "auto" mostly chooses a GPU for 3D finite elements after one use.
LIKELY_IN_SPACE = 400_000
# Its solutions may be exact (SciPy's are), and errors of one unknown may grow by many powers of ten in others.
TRIANGULAR = "A is triangular, and only the CPU engine keeps it so and divides by its pivots"


class Choice(NamedTuple):
    """An engine and the sentence that explain() prints about it.

    Attributes
    ----------
    engine : str
    reason : str
    request : Request
        The request, with the device that was found.
    predictions : tuple of Estimate
        Basis of the choice; empty where no prediction was needed.
    """

    engine: str
    reason: str
    request: Request
    predictions: tuple[Estimate, ...] = ()


def select(problem: Problem) -> tuple[Choice, Analysis]:
    """Choose an engine and analyse for it.

    Raises
    ------
    EngineUnavailableError
        A named engine does not support the matrix.
    """
    request = problem.request
    choice = choose(problem) if request.engine == AUTO else Choice(request.engine, request.reason, request)
    engine = registry.named(choice.engine)
    if reason := engine.unsupported(problem):
        raise EngineUnavailableError(reason)
    if reason := resolve_precision(problem, engine):
        choice = choice._replace(reason=f"{choice.reason}; {reason}")
    return choice, engine.analyze(problem)


def resolve_precision(problem: Problem, engine: Engine) -> str:
    """Resolve ``precision="auto"`` for a device engine; returns why it is mixed, "" if it is not."""
    if problem.options.precision != "auto" or not engine.capabilities.on_device:
        return ""
    reason = engine.estimate(problem).prefers_single
    problem.resolve_precision("mixed" if reason else "double")
    return f"precision='auto' is mixed because {reason}" if reason else ""


def choose(problem: Problem) -> Choice:
    """The engine with the least predicted seconds. A prediction requires an analysis, so devices are evaluated only
    where they may pay, and first where they are likely to."""
    request = problem.request
    if request.device is not None:
        devices = able(problem, True)
        if not devices:
            raise EngineUnavailableError(f"no GPU engine has a {problem.kind} factorization; leave out device=")
        return choose_on_device(problem, with_batches(devices) if request.systems else devices)
    hosts = able(problem, False)
    if not hosts:
        raise EngineUnavailableError(registry.named(registry.DEFAULT).unsupported(problem))
    if request.reason:
        return choose_host(problem, hosts, request.reason)
    if problem.options.pivoting == "partial":
        return choose_host(problem, hosts, "no GPU engine has partial pivoting")
    host_predictions: tuple[Estimate, ...] = () if is_likely(problem) else predicted(problem, hosts)
    seconds = fastest(host_predictions, request.uses).total(request.uses) if host_predictions else float("inf")
    would_not_pay = f"a GPU would not be faster: {seconds:.2g} s predicted on the CPU"
    if host_predictions and registry.is_not_imported() and seconds < loading(costs_of()):
        return choose_host(problem, hosts, would_not_pay, host_predictions)
    devices = able(problem, True)
    if not devices:
        return choose_host(problem, hosts, f"no GPU engine has a {problem.kind} factorization")
    try:
        if host_predictions and seconds < min(engine.lower_bound(problem) for engine in devices):
            return choose_host(problem, hosts, would_not_pay, host_predictions)
        if missing := presence.no_device():
            return choose_host(problem, hosts, missing, host_predictions)
        if problem.is_triangular():
            return choose_host(problem, hosts, TRIANGULAR, host_predictions)
        device_predictions = predicted(problem, devices)
    except EngineUnavailableError as error:
        return choose_host(problem, hosts, f"no GPU engine can run: {error}", host_predictions)
    if problem.is_singular():
        return choose_host(problem, hosts, "A is structurally singular")
    return decide(request, (*(host_predictions or predicted(problem, hosts)), *device_predictions))


def able(problem: Problem, on_device: bool) -> list[Engine]:
    """Engines that support the matrix."""
    return [engine for engine in registry.engines(on_device) if not engine.unsupported(problem)]


def is_likely(problem: Problem) -> bool:
    """Whether to analyse for a device before the processor."""
    often = problem.nnz * problem.request.uses > LIKELY
    in_space = problem.nnz > max(LIKELY_IN_SPACE, _core.NEIGHBOURS_IN_SPACE * problem.n)
    return (often or in_space) and presence.is_loaded()


def predicted(problem: Problem, engines: list[Engine]) -> tuple[Estimate, ...]:
    """The predictions of `engines`. Engines with an analysis that others reuse predict first."""
    if any(engine.capabilities.on_device for engine in engines):
        problem.catch_up()
    each = {engine.name: engine.estimate(problem) for engine in reversed(engines)}
    return tuple(each[engine.name] for engine in engines)


def choose_host(problem: Problem, hosts: list[Engine], reason: str, known: tuple[Estimate, ...] = ()) -> Choice:
    """The best engine for the processor; `reason` is why no device is used."""
    reason = f"engine='auto' and {reason}"
    if len(hosts) == 1:
        return Choice(hosts[0].name, reason, problem.request, known)
    many, predictions = problem.request.uses, known or predicted(problem, hosts)
    best = fastest(predictions, many)
    return Choice(best.engine, f"{reason}; {reason_for(best, predictions, many)}", problem.request, predictions)


def with_batches(engines: list[Engine]) -> list[Engine]:
    """Engines that factor many systems side by side; all if there are none."""
    return [engine for engine in engines if engine.capabilities.batches] or engines


def choose_on_device(problem: Problem, engines: list[Engine]) -> Choice:
    """Choose among the engines of a requested device; if none has enough memory, one that will raise the error."""
    request = problem.request
    predictions = predicted(problem, engines)
    requested = list(request.devices) if request.devices else request.device
    reason = f"device={requested} was requested"
    if all(prediction.note for prediction in predictions):
        return Choice(engines[-1].name, reason, request, predictions)
    choice = decide(request, predictions)
    return choice._replace(reason=f"{reason}; {choice.reason}")


def decide(request: Request, predictions: tuple[Estimate, ...]) -> Choice:
    """Take the fastest; one on a device has to be faster than the processor by a margin."""
    many = request.uses
    best = fastest(predictions, many)
    hosts = [p for p in predictions if not p.note and not registry.named(p.engine).capabilities.on_device]
    if hosts and registry.named(best.engine).capabilities.on_device:
        host = fastest(hosts, many)
        best = host if MARGIN * host.total(many) < best.total(many) else best
    if registry.named(best.engine).capabilities.on_device and request.device is None:
        from ..cuda import devices

        request = request._replace(device=devices.open_device().index)
    return Choice(best.engine, reason_for(best, predictions, many), request, predictions)


def reason_for(best: Estimate, predictions: tuple[Estimate, ...], many: float) -> str:
    """Text of the comparison."""
    second = [p for p in predictions if not p.note and p is not best]
    reason = f"predicted {best.total(many):.2g} s"
    if second:
        other = fastest(second, many)
        reason += f" (next: {other.engine}, {other.total(many):.2g} s)"
    reason += f" for a factorization and {many:g} refactorizations and solves"
    without = [f"{p.engine}: {p.note}" for p in predictions if p.note]
    first_use = max(p.first_use for p in predictions)
    first = [f"{first_use:.2g} s are added for kernels that must be compiled"] if first_use else []
    return "; ".join([reason, *without, *first])
