"""The CPU engine behind the interface: the core does analysis, factorization and solves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _core
from ...common import matrix
from ...common.memo import Memo
from ...common.options import Options
from ...common.view import View
from ...cost.calibration import costs_of, for_core
from ...cost.features import predict
from ...cost.model import REFACTORIZATIONS, Costs, Estimate, Observations, fastest
from ...cuda.layout import struct
from ..interface import KINDS, Analysis, Batch, Capabilities, Engine, Given, Measure
from ..problem import Problem, Request
from ..processor import cpu_factor, spec_of

#: Above this, the fronts of a single system fill vectors and threads [flop of a factorization].
MOST_FLOPS = 1e8
#: Below this, systems in lockstep are faster by columns than by fronts [flop].
MOST_COLUMN_FLOPS = 1.5e6
#: Of the factors of the systems that are in the lanes of vectors: above this, fronts read and write less memory.
MOST_COLUMN_BYTES = 6e6
#: Key of the values that were analysed, which guide the choice of pivots for batches by columns.
GUIDE = "guide"
REPORT = struct("shared/lockstep.hpp", "LockstepReport")


class CpuBatch(View):
    """A `Batch`: many systems of one pattern in lockstep on the processor, one SIMD lane each. `solve` with values
    solves while a group's factor is in the cache.

    Parameters
    ----------
    core : _core.Lockstep_d or a class like it
    fronts : callable, optional
        Returns a batch by fronts for the same systems, which gives entries of inverses; None if `core` is one.
    """

    device_array, overlaps = Batch.device_array, Batch.overlaps

    def __init__(self, core: Any, fronts: Callable[[], Any] | None = None):
        self._viewed, self._fronts = core, fronts
        self.nbytes: int = core.nbytes
        self.steps: np.ndarray = core.steps()

    def solve(self, b: Any, trans: int = 0, given: Given | None = None, **options: Any) -> Any:
        x = self._viewed.solve(b, trans) if given is None else self._viewed.refactor_solve(given[0], b, trans, given[1])
        self.steps, self.nbytes = self._viewed.steps(), self._viewed.nbytes
        return x

    def report(self) -> np.ndarray:
        return np.asarray(self._viewed.report()).view(REPORT)

    def inverse_on_pattern(self) -> tuple[np.ndarray, np.ndarray]:
        if self._fronts is None:
            entries, errors = self._viewed.inverse_on_pattern()
            return entries, errors
        fronts = CpuBatch(self._fronts())
        fronts.refactor(np.stack([self.values(system) for system in range(self.steps.size)]))
        entries, errors = fronts.inverse_on_pattern()
        report = fronts.report()
        errors[(report["n_perturbed"] > 0) | (report["failed"] >= 0)] = np.inf
        return entries, errors


def cpu_batch(problem: Problem, analysis: Analysis, count: int) -> Any:
    """A batch with capacity for `count` systems; None if separate factors are better.

    By columns if these suit a single system better and a group of systems fits the cache, else by fronts.

    Separate factors are better if pivoting is needed, if there are no scales that show which pivots are large enough,
    if the fronts of a single system fill vectors and threads, and if the matrix is triangular: column LU keeps it
    triangular and divides by its pivots.
    """
    options, symbolic = problem.options, analysis.core
    if options.pivoting == "partial" or symbolic.structural_rank < problem.n or symbolic.kind == "ldlt":
        return None
    by_columns = symbolic.method == "column"
    if by_columns and symbolic.lnz == problem.n:
        return None

    def fronts() -> Any:
        orders: dict[str, Any] = {"ordering": options.ordering, "perm": options.perm}
        return _core.fronts_like(symbolic, problem.pattern.core, for_core(), **orders) if by_columns else symbolic

    def lockstep(symbolic: Any, guide: np.ndarray) -> Any:
        symbolic, pattern = symbolic.with_scales_of(problem.dtype.char), problem.pattern.core
        return _core.lockstep(symbolic, pattern, count, guide, for_core(), refine=options.refine)

    none = np.empty(0, problem.dtype)
    entry = 64 * (2 if none.dtype.kind == "c" else 1)
    in_cache = 2 * symbolic.lnz * entry <= MOST_COLUMN_BYTES and problem.n <= _core.MOST_LOCKSTEP_ORDER
    if by_columns and in_cache and symbolic.row_scale.size:
        guide = problem.memo.get(GUIDE)
        guide = none if guide is None else guide.astype(problem.dtype)
        return CpuBatch(lockstep(symbolic, guide), lambda: lockstep(fronts(), none))
    of_fronts = fronts()
    if of_fronts.flops > MOST_FLOPS or (not of_fronts.cholesky and of_fronts.row_scale.size == 0):
        return None
    return CpuBatch(lockstep(of_fronts, none))


#: Names of the index arrays of the formats that the core reads.
INDEX_ARRAYS = {"csc": ("indptr", "indices"), "csr": ("indptr", "indices"), "coo": ("row", "col")}


class CpuEngine(Engine):
    """Column LU with threshold partial pivoting, or fronts, as the analysis decides; the other kinds by fronts."""

    name = "cpu"
    capabilities = Capabilities(KINDS, batches=True, schur=True)

    def analyze(self, problem: Problem) -> Analysis:
        core = problem.for_processor()
        if problem.request.systems and problem.kind == "lu":
            if core.method == "front" and core.flops <= MOST_COLUMN_FLOPS:
                core = problem.by_columns()
            if core.method == "column":
                problem.memo.put(GUIDE, problem.values.copy())
        return Analysis(core)

    def adopt(self, problem: Problem, analysis: Analysis) -> None:
        problem.memo.put("for_processor", analysis.core)

    def estimate(self, problem: Problem) -> Estimate:
        """Estimate from the analysis for the processor; if only other analyses exist, estimate from them."""
        request = problem.request
        if problem.memo.get("for_processor") is None and problem.memo.get("for_fronts") is not None:
            methods = {"lu": ("column", "front"), "cholesky": ("front",), "ldlt": ("ldlt",)}[problem.kind]
            candidates = [(core, method) for core in problem.for_fronts() for method in methods]
        else:
            candidates = [(problem.for_processor(), "")]
        known = problem.itemsize, costs_of(), request.on_device, self.name
        return fastest([predict(core, *known, method) for core, method in candidates], request.uses)

    def factor(self, problem: Problem, analysis: Analysis, values: np.ndarray) -> Any:
        delays = problem.memo("delays", _core.Delays)
        return cpu_factor(analysis.core, problem.pattern, values, problem.options, problem.kind, delays)

    def factor_matrix(
        self, A: Any, kind: str, options: Options, request: Request, cache: Any, borrow: bool
    ) -> tuple[Problem, Analysis, Any, Any, int] | None:
        format = A.format
        if format not in INDEX_ARRAYS or options.precision == "mixed" or options.symbolic != "host" or request.devices:
            return None
        # Cached patterns are used again: their analysis is for several factorizations, whatever the caller expects.
        spec = spec_of(kind, format, options, max(request.refactorizations, REFACTORIZATIONS))
        first, second = INDEX_ARRAYS[format]
        arrays = A.shape[0], getattr(A, first), getattr(A, second), A.data
        made = _core.factor_matrix(cache if request.remembered else None, spec, *arrays, for_core(), borrow)
        if made is None:
            return None
        canonical, symbolic, delays, factor, canonicalized, analyzed, known, dropped = made
        memo = Memo({"for_processor": symbolic, "delays": delays})
        problem = Problem(matrix.Pattern(canonical), matrix.EMPTY[A.data.dtype], kind, options, request, memo)
        problem.seconds = {"canonicalize": canonicalized, "analyze": analyzed}
        return problem, Analysis(symbolic), factor, known, dropped

    def batch(self, problem: Problem, analysis: Analysis, count: int) -> Batch | None:
        return cpu_batch(problem, analysis, count)

    def schur(self, problem: Problem, whole: Any, pattern: matrix.Pattern, dtype: np.dtype, memo: Memo) -> Any:
        options = problem.options
        how: dict[str, Any] = {"pivoting": options.pivoting, "refine": options.refine, "hermitian": options.hermitian}
        return _core.partial_factor(whole, pattern.core, np.empty(0, dtype), **how)

    def calibrate(self, case: tuple[str, bool] | None, measure: Measure, costs: Costs, budget: float) -> Observations:
        from .observe import observe_methods

        return {} if case is None else observe_methods(*case, budget)


ENGINE = CpuEngine()
