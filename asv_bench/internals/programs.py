"""Plans of fronts, and programs of the column engines made otherwise than they would choose."""

from copy import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

import gpusplu as gs
from gpusplu import _core
from gpusplu.common import matrix
from gpusplu.cost.calibration import for_core
from gpusplu.cost.table import shipped
from gpusplu.engines.crisscross.engine import CrisscrossEngine
from gpusplu.engines.crisscross.model import trailing_costs
from gpusplu.engines.crisscross.program import CrisscrossProgram
from gpusplu.engines.device.recorded import Recorded
from gpusplu.engines.glu.engine import GluEngine
from gpusplu.engines.glu.program import Tuning as GluTuning
from gpusplu.engines.problem import Problem
from gpusplu.engines.processor import cpu_factor
from gpusplu.engines.registry import registered
from gpusplu.engines.sflu.engine import SfluEngine
from gpusplu.engines.sflu.factorization import Tuning as SfluTuning
from gpusplu.engines.sflu.program import SfluProgram
from gpusplu.engines.supernodal import memory
from gpusplu.engines.supernodal.plan import Limits, make_plan

TRAILING_COSTS = trailing_costs(shipped())

FRONT_ARRAYS = ("width", "rows", "parent", "level", "phase")


def front_plan(factor):
    """What the plan of a factor of the supernodal engine says of each front, and of all together."""
    plan = factor.symbolic.parts()[1].plan
    return SimpleNamespace(
        **{name: np.asarray(getattr(plan, name), np.int64) for name in FRONT_ARRAYS},
        cholesky=plan.cholesky,
        phase_seconds=np.asarray(plan.phase_seconds),
        factor_size=plan.factor_size,
        block_size=plan.block_size,
        n_segments=len(plan.segment_ptr) - 1,
    )


def plan_for_one(A, definite):
    """The plan of fronts for one H200 with all the memory that it needs; no device is asked."""
    pattern, values = matrix.canonicalize(A)
    core = _core.analyze(pattern.ptr, pattern.ind, values, for_core(), cholesky=definite, ordering="nd", method="front")
    return make_plan(core, pattern, A.dtype, Limits())


def needed_bytes(factor):
    """Device memory of a factor of fronts if nothing is saved."""
    problem, analysis = factor.symbolic.parts()
    return memory.needed_bytes(analysis.plan, problem.pattern)


def least_bytes(symbolic, columns):
    """Device memory that a factor of fronts can hardly do without, with this many right-hand sides."""
    problem, analysis = symbolic.parts()
    plan, pattern = analysis.plan, problem.pattern
    least = make_plan(analysis.core, pattern, plan.scalar, replace(plan.limits, memory_bytes=1))
    return memory.needed_bytes(least, pattern) + memory.all_vector_bytes(least, columns)


ENGINES = {
    "glu": (GluEngine, GluTuning),
    "sflu": (SfluEngine, SfluTuning),
    "crisscross": (CrisscrossEngine, SfluTuning),
}


def tuned(engine, division=None, **tuning):
    """A context in which a column engine does not choose these members of its class Tuning itself.

    `division`: where the trailing block of crisscross begins.
    """
    kind, tuning_of = ENGINES[engine]
    divided = {} if division is None else {"division": division}
    return registered(kind(tuning=tuning_of(**tuning), **divided))


def program_of(factor):
    return factor.parts()[0].recorded.program


def long_columns(factor):
    """Columns of a factor of sflu that a block works on."""
    return program_of(factor).factorization.long_columns


def glu_choice(factor):
    """What glu's model predicts, phases of subtrees and levels after them."""
    program = program_of(factor)
    runs = program.runs
    levels = runs["level_begin"] >= 0
    return {
        "predicted_s": program.factor_seconds,
        "phases": int((~levels).sum()),
        "levels": int((runs["level_end"] - runs["level_begin"])[levels].sum()),
    }


class Variant:
    """A column engine's program made once more, otherwise, with a factor's values and some right-hand side.

    Parameters
    ----------
    factor : Factor
        Of a column engine.
    clock : HostClock
    kind : type
        Of the program.
    **options
        Of the program.
    """

    def __init__(self, factor, clock, kind, **options):
        first = factor.parts()[0].recorded
        self.clock, values = clock, first.values()
        b = np.random.default_rng(0).normal(size=first.program.n).astype(first.program.dtype)
        known = first.program.device, first.program.plan, first.program.pattern, first.program.dtype
        self.program = kind(*known, **options)
        self.program.prepare()
        self.recorded = recorded = Recorded(self.program)
        with recorded.device:
            self.stream = recorded.begin()
            recorded.send(self.stream, recorded.buffers.values.pointer, values)
            recorded.factor_now(self.stream)
            recorded.send(self.stream, recorded.buffers.vectors(1).b.pointer, b)
            self.stream.replay(recorded.graph("solve", 0, 1, 1))
            self.stream.synchronize()
            self.error = float(recorded.backward_error())

    def seconds(self, *key):
        """Of a replay of the graph of this key; with a function in its place of what that records."""
        with self.recorded.device:
            make = self.recorded.device.build_graph if callable(key[0]) else self.recorded.graph
            graph = make(*key)
            return self.clock.device(lambda: self.stream.replay(graph))

    def result(self):
        """Bytes of factor and solution."""
        program, buffers = self.program, self.recorded.buffers
        arrays = [np.empty(program.plan.nnz, program.dtype), np.empty(program.n, program.dtype)]
        with self.recorded.device:
            for array, buffer in zip(arrays, (buffers.own["factor"], buffers.vectors(1).x), strict=True):
                self.stream.copy(array.ctypes.data, buffer.pointer, array.nbytes)
            self.stream.synchronize()
        return [array.tobytes() for array in arrays]


def column_size(factor):
    """Columns, levels and multiply-adds of a plan of columns."""
    plan = program_of(factor).plan
    return plan.n, plan.n_levels, plan.flops


def sflu_variant(factor, tuning, clock):
    """Error, launches of a factorization, seconds of refactorization and solve; bytes of the result."""
    made = Variant(factor, clock, SfluProgram, tuning=SfluTuning(**tuning))
    launches = made.program.factorization.launches
    count = len(launches.groups.level_ptr) - 1 if launches.by_levels else 1
    found = {"error": made.error, "launches": count}
    found |= {"refactor_s": made.seconds("factor"), "solve_s": made.seconds("solve", 0, 1, 0)}
    return found, made.result()


def columns_before(program):
    """Crisscross' factorization of columns without those of the trailing block, which are the last level of tickets."""
    part = program.factorization
    if program.fronts is None:
        return part
    groups = part.launches.groups
    part, launches = copy(part), copy(part.launches)
    part.launches, launches.groups = launches, replace(groups, level_ptr=groups.level_ptr[:-1])
    return part


def crisscross_variant(factor, trailing, clock):
    """Seconds and predictions with a trailing block of this many columns; the model's if None."""
    n = program_of(factor).n
    made = Variant(factor, clock, CrisscrossProgram, division=None if trailing is None else n - trailing)
    program, buffers = made.program, made.recorded.buffers
    steps = {
        "columns_s": columns_before(program).run,
        "sparse_s": program.factorization.run,
        "factor_s": program.factor,
    }
    found = {
        name: made.seconds(lambda stream, step=step: step(stream, buffers, buffers.values))
        for name, step in steps.items()
    }
    found |= {"solve_s": made.seconds("solve", 0, 1, 0), "step_s": made.seconds("refactor_solve", 0, 1, 0)}
    terms = _core.count_trailing_terms(program.plan.col_ptr, program.plan.row, program.plan.diag, program.division)
    found |= {"trailing": n - program.division, "terms": int(terms), "error": made.error}
    sparse, dense = program.predicted
    return found | {"predicted_sparse_s": sparse, "predicted_dense_s": dense}


def column_plan(A, ordering):
    """The plan of the column engines before columns are moved to a trailing block; needs no device."""
    known = gs.analyze(A, engine="cpu", ordering=ordering).parts()[0]
    values = matrix.values_for(known.pattern, A.data, False)
    problem = Problem(known.pattern, values, known.kind, known.options, known.request)
    cpu = cpu_factor(problem.for_columns(), problem.pattern, values, problem.options)
    return CrisscrossEngine().plan(problem, cpu)
