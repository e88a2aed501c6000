"""The column engines behind the interface: analysis, pivots from the CPU, plan, program.

The CPU engine computes the first factorization (Gilbert and Peierls, with threshold partial pivoting), which fixes
pivots and the pattern of L + U. The device factors the same values again, and all later ones. When its pivots become
bad, the CPU engine chooses new ones, gpusplu makes a new plan from them, and the device continues with that plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...cost.calibration import costs_of
from ...cost.features import factor_features, moving, pivoting_seconds, start_features
from ...cost.model import Costs, Estimate, Observation, Observations, excess, net_of_solve, seconds
from .. import registry
from ..device.engine import DeviceEngine
from ..device.program import COMMON
from ..interface import Analysis, Capabilities, Measure
from ..problem import Problem
from ..processor import cpu_factor
from .plan import MOST_MAPPED, ColumnPlan, LuPattern, make_column_plan


def predict(engine: str, core: Any, itemsize: int, costs: Costs, on_device: bool = False) -> Estimate:
    """For a column engine: in the first factorization the CPU engine chooses pivots, and a plan is made from them."""
    features = factor_features(core)
    refactor, solve, plan = (seconds(costs[f"{engine}.{phase}"], features) for phase in ("refactor", "solve", "plan"))
    first = pivoting_seconds(core, costs) + plan + refactor
    first += seconds(costs["start.factor"], start_features(core, itemsize))
    analyze, moved = seconds(costs["columns.analyze"], features), moving(costs, core, itemsize, on_device, True)
    return Estimate(engine, analyze, first, refactor, solve, moved)


def column_bytes(core: Any, itemsize: int) -> int:
    """Approximate device memory of a column engine [bytes]."""
    entries, updates = 2 * core.lnz, core.flops / 2
    maps = 2 * updates if updates <= MOST_MAPPED else 0
    return int(entries * (16 + itemsize) + maps + core.nnz * (16 + 3 * itemsize))


if TYPE_CHECKING:  # what a device needs is imported with the first program
    from .program import ColumnProgram


#: Kernel files of all column engines.
COLUMN_FILES = (*COMMON, "columns/column_solve.cu")


class ColumnEngine(DeviceEngine):
    """LU on the pattern that the CPU engine's pivots fix, by `PROGRAM` of the engine's program.py.

    Parameters
    ----------
    **options
        Further parameters of the engine's program, for measurements and tests.

    Attributes
    ----------
    modelled : mapping
        Parts of a refactorization that the plan's own model predicts, by feature of "<name>.model" in the table of
        constants: names in the statistics of a factor.
    """

    capabilities = Capabilities(("lu",), ("column",), on_device=True)
    modelled: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **options: Any):
        self._options = options

    def unsupported(self, problem: Problem) -> str:
        if problem.cholesky:
            others = " or ".join(f"engine={name!r}" for name in registry.names_for("cholesky"))
            return f"engine={self.name!r} is for LU; pass {others} to cholesky"
        return super().unsupported(problem)

    def analyze(self, problem: Problem) -> Analysis:
        """Choose the ordering with the shortest predicted refactorization and solve; pivots are chosen for it."""
        cores = problem.for_columns()
        if len(cores) == 1:
            return Analysis(cores[0])
        steps = [one.step for one in self._estimates(problem, cores)]
        compared = tuple((core.ordering, step) for core, step in zip(cores, steps, strict=True))
        return Analysis(cores[steps.index(min(steps))], compared=compared)

    def adopt(self, problem: Problem, analysis: Analysis) -> None:
        problem.memo.put("for_columns", [analysis.core])

    def estimate(self, problem: Problem) -> Estimate:
        """Estimate from the columns' own ordering if it exists, else from the best of those for fronts."""
        own = problem.memo.get("for_columns")
        cores = problem.for_fronts() if own is None else [self.analyze(problem).core]
        pairs = zip(self._estimates(problem, cores), cores, strict=True)
        best, core = min(pairs, key=lambda pair: pair[0].total(problem.request.uses))
        return self.within(problem, self.device(problem), column_bytes(core, problem.itemsize), best)

    def _estimates(self, problem: Problem, cores: list[Any]) -> list[Estimate]:
        costs, on_device = costs_of(self.device(problem).name), problem.request.on_device
        return [predict(self.name, core, problem.itemsize, costs, on_device) for core in cores]

    def factor_on_device(self, problem: Problem, analysis: Analysis, values: np.ndarray) -> Any:
        from ..device.factor import DeviceFactor

        start = perf_counter()
        cpu = cpu_factor(analysis.core, problem.pattern, values, problem.options)
        program = self.upload(problem, self.plan(problem, cpu), values.dtype)
        return DeviceFactor(
            program,
            analysis.core,
            problem.pattern,
            values,
            problem.options,
            problem.request.device_memory,
            cpu=cpu,
            replan=lambda cpu: self.upload(problem, self.plan(problem, cpu), values.dtype),
            spent=perf_counter() - start,
        )

    def plan(self, problem: Problem, cpu: Any) -> ColumnPlan:
        """Plan with the pivots of a factor of the CPU engine."""
        analysed, pivots = cpu.symbolic, (cpu.pivot_rows, cpu.pivot_columns)
        scales = (analysed.row_scale, analysed.col_scale)
        return make_column_plan(problem.pattern, *pivots, *scales, columns=self.columns(problem, *pivots))

    def columns(self, problem: Problem, row_perm: np.ndarray, col_perm: np.ndarray) -> LuPattern | None:
        """L + U, if the caller selects a symbolic phase of the engine's own."""
        return None

    def upload(self, problem: Problem, plan: ColumnPlan, dtype: np.dtype) -> ColumnProgram:
        """The program of one factor, its kernels compiled."""
        threshold = problem.options.pivot_threshold
        kind: type[ColumnProgram] = import_module(f"..{self.name}.program", __package__).PROGRAM
        made = kind(self.device(problem), plan, problem.pattern, dtype, threshold, **self._options)
        made.prepare()
        return made

    def calibrate(self, case: tuple[str, bool] | None, measure: Measure, costs: Costs, budget: float) -> Observations:
        return {} if case is None or case[1] else observe_columns(self.name, measure, costs, self.modelled)


def observe_columns(engine: str, measure: Measure, costs: Costs, parts: Mapping[str, str]) -> Observations:
    """Measure an engine on a matrix of the gallery, if it can factor the matrix.

    Parameters
    ----------
    engine : str
    measure : callable
        See `Engine.calibrate`.
    costs : Costs
        Of the processor.
    parts : mapping
        Parts of a refactorization that the plan's own model predicts, by feature: names in the statistics of a factor.
    """
    found = measure(engine, True)
    if isinstance(found, str):
        return {}
    problem, analysis = found.factor_object.symbolic.parts()
    features = factor_features(analysis.core)
    before = pivoting_seconds(analysis.core, costs) + found.refactor
    before += seconds(costs["start.factor"], start_features(analysis.core, problem.itemsize))
    refactor, stats = net_of_solve(found.refactor, found.solve, found.step), found.factor_object.stats
    modelled = {feature: float(stats[name]) for feature, name in parts.items()}
    return {
        f"{engine}.refactor": [Observation(features, refactor)],
        **({f"{engine}.model": [Observation(modelled, refactor)]} if modelled else {}),
        f"{engine}.solve": [Observation(features, found.solve)],
        "columns.analyze": [Observation(features, found.analyze)],
        **excess(f"{engine}.plan", features, found.factor, before),
    }
