"""The supernodal engine behind the interface: predictions, the engine, measurements for its constants."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from ...common.matrix import Pattern, to_device
from ...common.memo import Memo
from ...common.stats import show
from ...common.timing import repeated, synchronizer
from ...cost.calibration import costs_of
from ...cost.features import factor_features, move_features, moving, start_features
from ...cost.model import Costs, Estimate, Features, Observation, Observations, excess, net_of_solve, seconds
from ...cuda import devices, several
from ...cuda.nvrtc import compile_kernels
from ...errors import ON_HOST
from ..device.engine import DeviceEngine
from ..device.program import COMMON
from ..interface import KINDS, Analysis, Capabilities, Measure
from ..problem import Problem
from .plan import PHASES, Plan


def plan_features(plan: Plan) -> Features:
    """Features of a plan: modelled seconds."""
    modelled = dict(zip(PHASES, map(float, plan.phase_seconds), strict=True))
    return {"call": 1.0, **modelled, "modelled": float(plan.solve_seconds)}


def predict(core: Any, itemsize: int, plan: Plan, costs: Costs, on_device: bool = False) -> Estimate:
    """Predict with the engine's plan."""
    features = plan_features(plan)
    refactor, solve = (seconds(costs[f"supernodal.{phase}"], features) for phase in ("refactor", "solve"))
    if plan.streamed:  # the plan's own, copies included; slower kernels hide more of them
        refactor, solve = max(refactor, float(plan.factor_seconds)), max(solve, float(plan.solve_seconds))
    first = refactor + seconds(costs["start.factor"], start_features(core, itemsize))
    return Estimate("supernodal", 0.0, first, refactor, solve, moving(costs, core, itemsize, on_device, True))


class SupernodalEngine(DeviceEngine):
    """Fronts on a GPU: LU and LDL^T with pivoting inside fronts, and Cholesky."""

    name = "supernodal"
    capabilities = Capabilities(KINDS, ("front",), batches=True, on_device=True, several=True, schur=True)
    files = (*COMMON, "fronts/block_fronts.cu", "fronts/solve_fronts.cu", "fronts/warp_fronts.cu")

    def unsupported(self, problem: Problem) -> str:
        if problem.options.pivoting == "partial":
            return f"engine={self.name!r} pivots inside its fronts only; pass pivoting='auto' or {ON_HOST}"
        return super().unsupported(problem)

    def analyze(self, problem: Problem) -> Analysis:
        """The ordering with the plan that predicts the fastest factorization and solve."""
        return problem.memo(self._key(problem), lambda: self._planned(problem))

    def _key(self, problem: Problem) -> Hashable:
        """Key of the analysis: a plan is made for the precision of a factor."""
        return (self.name, "single") if problem.options.precision == "mixed" else self.name

    def _planned(self, problem: Problem) -> Analysis:
        candidates = problem.for_fronts()
        if problem.n == 0 or candidates[0].structural_rank < problem.n:
            return Analysis(candidates[0])
        return self.plan(problem, candidates, problem.dtype)

    def plan(self, problem: Problem, candidates: list[Any], dtype: np.dtype) -> Analysis:
        """The best of several analyses, planned within the usable memory."""
        from .memory import plan_within

        request = problem.request
        if request.devices and not request.systems:  # a batch is distributed by systems
            from .shared_plan import plan_shared

            arguments = candidates, problem.pattern, dtype, self.devices(problem), request.device_memory
            return problem.timed("plan", lambda: plan_shared(*arguments))
        inputs = candidates, problem.pattern, dtype, self.device(problem), request.device_memory
        return problem.timed("plan", lambda: plan_within(*inputs))

    def adopt(self, problem: Problem, analysis: Analysis) -> None:
        problem.memo.put(self._key(problem), analysis)

    def estimate(self, problem: Problem) -> Estimate:
        device, analysis = self.device(problem), self.analyze(problem)
        plan = analysis.plan
        if plan is None:
            return Estimate(self.name, note="A is structurally singular")
        costs = costs_of(device.name)
        seconds = predict(analysis.core, problem.itemsize, plan, costs, problem.request.on_device)
        found = self.within(problem, device, self.bytes_needed(problem, plan), seconds)
        return found._replace(prefers_single="device memory is insufficient") if plan.streamed else found

    def bytes_needed(self, problem: Problem, plan: Any) -> int:
        """Device memory of a factor, about [bytes]."""
        from .memory import missing_bytes

        allowed = problem.request.device_memory
        free = devices.usable_bytes(self.device(problem), allowed)
        if plan.devices > 1:
            from .shared_plan import needed_of_each

            pairs = zip(needed_of_each(plan, problem.pattern), self.devices(problem), strict=True)
            return free + max(0, *(wanted - devices.usable_bytes(device, allowed) for wanted, device in pairs))
        return free + missing_bytes(plan, problem.pattern, free)

    def factor_on_device(self, problem: Problem, analysis: Analysis, values: np.ndarray) -> Any:
        from ..device.factor import DeviceFactor

        key = "supernodal.program", values.dtype, problem.options.hermitian
        program = problem.memo(key, lambda: self.upload(problem, analysis, values.dtype))
        core, allowed = analysis.core.with_scales_of(values.dtype.char), problem.request.device_memory
        replan = partial(self.replan, problem, values.dtype) if problem.kind == "ldlt" else None
        known = program, core, problem.pattern, values, problem.options, allowed
        if not problem.request.devices:
            return DeviceFactor(*known, replan=replan)
        from .shared_program import SharedFactor

        with several.failures(self.devices(problem)):
            return SharedFactor(*known, replan=replan)

    def replan(self, problem: Problem, dtype: np.dtype, cpu: Any) -> Any:
        """The program with the pivots of LDL^T that the CPU engine found, delayed columns included."""
        pairs = np.flatnonzero(cpu.pivots()[1]).astype(np.int32)
        core = cpu.symbolic.with_pivots(cpu.pivot_columns, pairs)
        return self.upload(problem, self.plan(problem, [core], dtype), dtype, cpu.pivot_columns)

    def upload(self, problem: Problem, analysis: Analysis, dtype: np.dtype, pivots: np.ndarray | None = None) -> Any:
        """The program that all factors of this type on the pattern share or, with `pivots`, one with its own order."""
        from .program import FrontProgram

        plan = analysis.plan
        if plan is None or np.dtype(plan.scalar) != dtype:
            plan = self.plan(problem, [analysis.core.with_scales_of(dtype.char)], dtype).plan
        known = plan, problem.pattern, problem.options.hermitian, pivots
        if plan.devices > 1:
            from .shared_program import SharedProgram

            program: FrontProgram = SharedProgram(self.devices(problem), *known, problem.request.device_memory)
        else:
            program = FrontProgram(self.device(problem), *known)
        program.prepare()
        return program

    def batch(self, problem: Problem, analysis: Analysis, count: int) -> Any:
        from .batch import DistributedBatch, make_batch, shares

        if not problem.request.devices:
            return make_batch(problem, analysis, self.device(problem), count)
        opened = self.devices(problem)
        counts = shares(count, [device.multiprocessors for device in opened])
        parts = [(device, some) for device, some in zip(opened, counts, strict=True) if some]
        batches = [make_batch(problem, analysis, device, some) for device, some in parts]
        made = [batch for batch in batches if batch is not None]
        return DistributedBatch(made, [device for device, _ in parts]) if len(made) == len(parts) else None

    def schur(self, problem: Problem, whole: Any, pattern: Pattern, dtype: np.dtype, memo: Memo) -> Any:
        if problem.request.devices:
            return None
        from .complement import DeviceComplement, make_program

        device, allowed, options = self.device(problem), problem.request.device_memory, problem.options
        known = device, whole.with_scales_of(dtype.char), pattern, dtype, options.hermitian, allowed
        program = memo(("supernodal.complement", dtype), lambda: make_program(*known))
        return DeviceComplement(program, options, allowed)

    def describe(self, analysis: Analysis, stats: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Lines about several devices, and about a factor that does not fit into one device's memory."""
        facts = stats or facts_of(analysis.plan)
        if facts.get("shares"):
            return [("devices", devices_text(facts))]
        if not facts.get("n_windows"):
            return []
        kept = f"{show(facts['host_bytes'])} bytes of the factor are kept on the host"
        return [("streaming", f"{show(facts['n_windows'])} segments, {kept}")]

    def calibrate(self, case: tuple[str, bool] | None, measure: Measure, costs: Costs, budget: float) -> Observations:
        return observe_compiler(self.files) if case is None else observe_fronts(case[0], measure, budget)


def facts_of(plan: Any) -> Mapping[str, Any]:
    """Facts of a plan that the statistics of its factors have too."""
    if plan is None:
        return {}
    if plan.devices > 1:
        return dict(plan.facts)
    return {"n_windows": plan.streamed, "host_bytes": plan.host_size * np.dtype(plan.scalar).itemsize}


def devices_text(facts: Mapping[str, Any]) -> str:
    """Of explain(), about several devices."""
    shares = ", ".join(f"{share:.0%}" for share in facts["shares"])
    route = "peer to peer" if facts["peer_to_peer"] else "through the host, as not all have peer access"
    gain = facts["seconds_on_one"] / facts["seconds_shared"]
    fronts = facts["shared_fronts"]
    which = f"{show(fronts)} large fronts by tiles on several devices, each other front" if fronts else "each front"
    text = f"{len(facts['shares'])} devices with {shares} of the work, {which} on one device"
    return f"{text}; {show(facts['traffic_bytes'])} bytes are copied {route}; predicted {gain:.2g} times as fast as one"


def observe_fronts(name: str, measure: Measure, budget: float) -> Observations:
    """Measure the engine on a matrix of the gallery, and the cost of values and vectors on the other side."""
    from ... import gallery

    A = gallery.named(name)
    on_device, on_host = measure("supernodal", True), measure("supernodal", False)
    if isinstance(on_device, str) or isinstance(on_host, str):
        return {}
    problem, analysis = on_device.factor_object.symbolic.parts()
    core, plan = analysis.core, plan_features(analysis.plan)
    start, move = (features(core, problem.itemsize) for features in (start_features, move_features))
    return {
        "start.analyze": [Observation(factor_features(core), min(on_device.analyze, on_host.analyze))],
        "supernodal.refactor": [Observation(plan, net_of_solve(on_device.refactor, on_device.solve, on_device.step))],
        "supernodal.solve": [Observation(plan, on_device.solve)],
        **excess("start.factor", start, min(on_device.factor, on_host.factor), on_device.refactor),
        **excess("move.to_device", move, on_host.step, on_device.step),
        "move.to_host": [Observation(move, seconds_to_host(A, budget))],
    }


def observe_compiler(files: tuple[str, ...]) -> Observations:
    """Measure the compilation of an engine's kernels, without the cache."""
    device = devices.open_device()
    start = perf_counter()
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda file: compile_kernels(file, "d", 0, device.arch), files))
    return {"start.compile": [Observation({"call": 1.0}, perf_counter() - start)]}


def seconds_to_host(A: Any, budget: float) -> float:
    """Seconds to copy values and a right-hand side from the device, and a solution to it."""
    x = np.ones(A.shape[0], A.dtype)
    values, b = to_device(A.data), to_device(x)
    return repeated(lambda: (values.get(), b.get(), to_device(x)), budget, synchronizer())


ENGINE = SupernodalEngine()
