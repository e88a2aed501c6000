"""Plan of the supernodal GPU engine: the arrays that kernels need before they get values.

The arrays and what they mean: ``core/plan/fronts/plan.hpp``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ... import _core
from ...common.view import View
from ...cost.calibration import for_core
from ...cuda.layout import constant, struct

SHARED = "shared/fronts.hpp"  # constants that planner, kernels and this file share
FRONT, LAUNCH = struct(SHARED, "Front"), struct(SHARED, "Launch")

PHASES = ("warp", "small", "block", "large")
LARGE = constant(SHARED, "LARGE_PHASE")


@dataclass(frozen=True)
class Limits:
    """The properties of a device that the plan needs.

    Attributes
    ----------
    shared_memory_bytes : int
        Most shared memory that a block can have.
    multiprocessors : int
    arch : int
        Compute capability, 90 for 9.0.
    block_bytes : int
        Memory that contribution blocks should not exceed, if possible; 0: any. Less memory costs launches.
    memory_bytes : int
        Memory that factors and contribution blocks must not exceed; 0: any. If it is not enough for all factors they
        stream; if that is not possible either, `factor_size` and `block_size` of the plan are the necessary sizes.
    costs : _core.Costs
        Constants for the plan's predictions and decisions; default: constants without a device.
    """

    shared_memory_bytes: int = 232448
    multiprocessors: int = 132
    arch: int = 90
    block_bytes: int = 0
    memory_bytes: int = 0
    costs: Any = field(default_factory=for_core)


class Plan(View):
    """Arrays of the C++ plan as attributes, and those made of structs with their types.

    Attributes
    ----------
    devices : int
        Devices that share the fronts.
    """

    devices = 1

    def __init__(self, core: Any, limits: Limits):
        super().__init__(core)
        self.limits = limits

    #: Which fronts are large.
    is_large = cached_property(lambda self: self.phase == LARGE)
    #: Factor entries of each front, and entries of each front's contribution block [scalars].
    factor_entries = cached_property(lambda self: self._viewed.factor_entries())
    block_entries = cached_property(lambda self: self._viewed.block_entries())
    #: Leading dimension of each front's contribution block.
    block_ld = cached_property(lambda self: self._viewed.block_ld())
    #: Types FRONT; LAUNCH, in the order in which they run; int32, shape (., 4).
    front_records = cached_property(lambda self: self._viewed.fronts.view(FRONT))
    launches = cached_property(lambda self: self._viewed.launches.view(LAUNCH))
    items = cached_property(lambda self: self._viewed.items.view(np.int32).reshape(-1, 4))

    @cached_property
    def solve_schedule(self) -> Any:
        """``core/plan/fronts/solve_schedule.hpp``"""
        return self._viewed.solve_schedule()

    @property
    def ld(self) -> int:
        """Rows of right-hand sides and solutions."""
        return int(self.n)

    @property
    def last_part(self) -> int:
        """Last part of a backward solve in the solve schedule."""
        return 0

    @property
    def solve_parts(self) -> int:
        """Number of parts of the solve schedule."""
        segments = len(self.segment_ptr) - 1
        return int(self.streamed) + int(self.streamed < segments)


def make_plan(symbolic: Any, pattern: Any, dtype: Any, limits: Limits | None = None, **parameters: int) -> Plan:
    """Plan the factorization of matrices with this pattern.

    Parameters
    ----------
    symbolic : _core.Symbolic
        Of method "front".
    pattern : matrix.Pattern
        Canonical pattern that was analysed: `ptr` and `ind`.
    dtype : dtype
        Of the factor.
    limits : Limits, optional
        Of the device; default: one H200.
    **parameters
        `warp_rows`, `small_rows`, `block_rows`, `large_cost` and `large_tile` of ``core/plan/fronts/plan.hpp``.

    Returns
    -------
    Plan
    """
    limits = limits or Limits()
    core = _core.make_plan(symbolic, pattern.ptr, pattern.ind, limits.costs, **_named(dtype, limits), **parameters)
    return Plan(core, limits)


def make_best_plan(
    symbolics: list[Any], pattern: Any, dtype: Any, limits: Limits | None = None, **parameters: int
) -> tuple[Any, Plan, list[float]]:
    """Among several analyses of one pattern, the one with the fastest predicted factorization and solve, and its plan.

    Parameters
    ----------
    symbolics : list of _core.Symbolic
        Of method "front".
    pattern, dtype, limits, **parameters
        As :func:`make_plan` takes them.

    Returns
    -------
    symbolic : _core.Symbolic
    plan : Plan
    seconds : list of float
        Of a factorization and a solve, predicted for each analysis.
    """
    limits = limits or Limits()
    named = {**_named(dtype, limits), **parameters}
    which, core, seconds = _core.make_best_plan(symbolics, pattern.ptr, pattern.ind, limits.costs, **named)
    return symbolics[which], Plan(core, limits), seconds


def predict(symbolic: Any, dtype: Any, limits: Limits | None = None, **parameters: int) -> tuple[float, float]:
    """Seconds of a factorization and of a solve that :func:`make_plan` would predict, at a fraction of its cost."""
    limits = limits or Limits()
    factor, solve = _core.predict_plan(symbolic, limits.costs, **_named(dtype, limits), **parameters)
    return factor, solve


def _named(dtype: Any, limits: Limits) -> dict[str, Any]:
    of_device = {name: value for name, value in vars(limits).items() if name != "costs"}
    return {"scalar": np.dtype(dtype).char, **of_device}
