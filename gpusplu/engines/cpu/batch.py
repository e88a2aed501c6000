"""Many systems of one pattern in lockstep on the processor: one SIMD lane each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ...cost.calibration import for_core
from ...cuda.layout import struct
from ..interface import Analysis

if TYPE_CHECKING:
    from ..problem import Problem

#: Above this, the fronts of a single system fill vectors and threads [flop of a factorization].
MOST_FLOPS = 1e8
REPORT = struct("shared/lockstep.hpp", "LockstepReport")


class CpuBatch:
    """An `EngineBatch` of the core; also has `refactor_solve`, which solves while a group's factor is in the cache.

    Parameters
    ----------
    core : _core.LockstepF64 or a class like it
    """

    def __init__(self, core: Any):
        self._core = core
        self.n: int = core.n
        self.nbytes: int = core.nbytes
        self.steps: np.ndarray = core.steps()
        self.refactor, self.errors, self.slogdet, self.values = core.refactor, core.errors, core.slogdet, core.values
        self.inverse_on_pattern = core.inverse_on_pattern

    def solve(self, b: np.ndarray, trans: int = 0) -> Any:
        """op(A_i) x_i = b_i, shape (count, n) or (count, n, k); measured, and refined by the accuracy policy."""
        return self._solved(self._core.solve(b, trans))

    def refactor_solve(
        self, values: np.ndarray, b: np.ndarray, trans: int = 0, source: np.ndarray | None = None
    ) -> Any:
        """`refactor`, then `solve`."""
        return self._solved(self._core.refactor_solve(values, b, trans, source))

    def _solved(self, x: Any) -> Any:
        self.steps, self.nbytes = self._core.steps(), self._core.nbytes
        return x

    def report(self) -> np.ndarray:
        """Status of the last factorization of each system."""
        return np.asarray(self._core.report()).view(REPORT)


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
