"""Many systems of one pattern in lockstep on the processor: one SIMD lane each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ...cost.calibration import for_core
from ...cuda.layout import struct
from ..interface import Analysis, Batch, Given

if TYPE_CHECKING:
    from ..problem import Problem

#: Above this, the fronts of a single system fill vectors and threads [flop of a factorization].
MOST_FLOPS = 1e8
REPORT = struct("shared/lockstep.hpp", "LockstepReport")


class CpuBatch(Batch):
    """A batch of the core; `solve` with values solves while a group's factor is in the cache.

    Parameters
    ----------
    core : _core.Lockstep_d or a class like it
    """

    def __init__(self, core: Any):
        self._core = core
        self.n: int = core.n
        self.nbytes: int = core.nbytes
        self.steps: np.ndarray = core.steps()

    def refactor(self, values: np.ndarray, source: np.ndarray | None = None, *, wait: bool = True) -> None:
        self._core.refactor(values, source)

    def solve(self, b: Any, trans: int = 0, given: Given | None = None, **options: Any) -> Any:
        x = self._core.solve(b, trans) if given is None else self._core.refactor_solve(given[0], b, trans, given[1])
        self.steps, self.nbytes = self._core.steps(), self._core.nbytes
        return x

    def report(self) -> np.ndarray:
        return np.asarray(self._core.report()).view(REPORT)

    def errors(self) -> np.ndarray:
        return self._core.errors()

    def slogdet(self) -> tuple[np.ndarray, np.ndarray]:
        return self._core.slogdet()

    def inverse_on_pattern(self) -> tuple[np.ndarray, np.ndarray]:
        return self._core.inverse_on_pattern()

    def values(self, system: int) -> np.ndarray:
        return self._core.values(system)


def cpu_batch(problem: Problem, analysis: Analysis, count: int) -> CpuBatch | None:
    """A batch with capacity for `count` systems; None if separate factors are better.

    Separate factors are better if pivoting is needed, if there are no scales that show which pivots are large enough,
    if the fronts of a single system fill vectors and threads, and if the matrix is triangular: column LU keeps it
    triangular and divides by its pivots.
    """
    options, symbolic = problem.options, analysis.core
    if options.pivoting == "partial" or symbolic.structural_rank < problem.n or symbolic.kind == "ldlt":
        return None
    if symbolic.method == "column" and symbolic.lnz == problem.n:
        return None
    if symbolic.method == "column":
        orders: dict[str, Any] = {"ordering": options.ordering, "perm": options.perm}
        symbolic = _core.fronts_like(symbolic, problem.pattern.core, for_core(), **orders)
    if symbolic.flops > MOST_FLOPS or (not symbolic.cholesky and symbolic.row_scale.size == 0):
        return None
    like = np.empty(0, problem.dtype)
    symbolic = symbolic.with_scales_of(problem.dtype.char)
    return CpuBatch(_core.lockstep(symbolic, problem.pattern.core, count, like, for_core(), refine=options.refine))
