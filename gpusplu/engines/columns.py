"""From a matrix to a factor of one of the column engines: analysis, pivots from the CPU, plan, program.

The first factorization is the CPU engine's (Gilbert and Peierls, with threshold partial pivoting); it fixes pivots and
the pattern of L + U. The device factors the same values again, and from then on alone. Where its pivots go bad, the CPU
engine chooses new ones, a new plan is made of them, and the device goes on with that.
"""

from __future__ import annotations

from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

from .. import _core
from ..cuda import devices
from ..errors import EngineUnavailableError
from ..matrix import Pattern
from ..options import Options
from ..plans.columns import make_column_plan
from .column_program import ColumnProgram
from .cpu import cpu_factor
from .device_factor import DeviceFactor

# Program of each engine, in the module of its name.
PROGRAMS = {"glu": "GluProgram", "sflu": "SfluProgram", "crisscross": "CrisscrossProgram"}


def analyze_columns(pattern: Pattern, canonical: np.ndarray, options: Options, cholesky: bool, engine: str) -> Any:
    """Ordering for a column engine: the one whose columns promise the shortest way from the first level to the last.

    Raises
    ------
    EngineUnavailableError
        For Cholesky.
    """
    if cholesky:
        raise EngineUnavailableError(
            f"engine={engine!r} is for LU; pass engine='supernodal' or engine='cpu' to cholesky"
        )
    return _core.analyze_columns(
        pattern.ptr,
        pattern.ind,
        canonical,
        ordering=options.ordering,
        perm=options.perm,
        matching=options.matching,
    )


def factor_columns(symbolic: Any, canonical: np.ndarray) -> DeviceFactor:
    """The engine's factor of the matrix with these canonical values.

    Raises
    ------
    RuntimeError
        ``Factor is exactly singular``.
    """
    choice, pattern, options = symbolic._choice, symbolic._pattern, symbolic._options
    start = perf_counter()
    device = devices.open_device(choice.device)
    cpu = cpu_factor(symbolic._core, pattern, canonical, options)
    kind = getattr(import_module(f".{symbolic.engine}", __package__), PROGRAMS[symbolic.engine])

    def make(cpu: Any) -> ColumnProgram:
        analysed = cpu.symbolic
        plan = make_column_plan(pattern, cpu.row_perm, cpu.col_perm, analysed.row_scale, analysed.col_scale)
        made: ColumnProgram = kind(device, plan, pattern, canonical.dtype, make, options.pivot_threshold)
        made.prepare()
        return made

    program = make(cpu)
    return DeviceFactor(
        program,
        symbolic._core,
        pattern,
        canonical,
        options,
        choice.device_memory,
        cpu=cpu,
        spent=perf_counter() - start,
    )
