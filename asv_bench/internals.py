"""Everything that measurements need of gpusplu beyond its public functions: no other module here knows its inside.

The graphs of a device factor are replayed and timed, and taken apart command by command: the commands that were
recorded run once more outside of any graph, one after another, with CUDA events between them. A kernel that spins first
gives the host the time to enqueue everything, so that no gap of Python's counts. An event costs about a microsecond,
and commands that a graph runs side by side are measured in turn: the sum may exceed the replay.
"""

import itertools
import statistics
import sys
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from gpusplu.engines.grouped_program import GroupedProgram
from gpusplu.engines.program import Program
from gpusplu.engines.recorded import Recorded
from gpusplu.plans.columns import make_column_plan
from gpusplu.plans.crisscross_model import H200 as CORNER_COSTS
from gpusplu.plans.crisscross_model import CornerCosts, predict_divisions
from gpusplu.plans.fronts import make_plan

import gpusplu as gs
from gpusplu import _core, matrix
from gpusplu.engines import front_memory
from gpusplu.engines.crisscross import CrisscrossProgram
from gpusplu.engines.glu import MODES as GLU_MODES
from gpusplu.engines.glu import GluProgram
from gpusplu.engines.sflu import SfluProgram
from gpusplu.kernels import launch

__all__ = ["CORNER_COSTS", "GLU_MODES", "CornerCosts", "predict_divisions"]

SPIN_SECONDS = 5e-3
REPEAT = 7
# Phase and what is recorded for it: A x = b, one right-hand side, backward error not measured or measured.
GRAPHS = {
    "refactor": ("refactor",),
    "solve": ("solve", 0, 1, 0),
    "step": ("refactor_solve", 0, 1, 0),
    "solve_certified": ("solve", 0, 1, 1),
    "step_certified": ("refactor_solve", 0, 1, 1),
}


def emulate():
    """Put the emulator of the tests in place of the device: PYTHONPATH has to name its folder, tests/kernels."""
    import fake_cupy
    from emulated_device import EmulatedDevice

    device = EmulatedDevice()
    sys.modules["cupy"] = fake_cupy
    launch.open_device = lambda which=None: device


# The processor

num_threads, set_num_threads = _core.num_threads, _core.set_num_threads
minimum_degree, nested_dissection = _core.amd, _core.nested_dissection
ordering_cost = _core.ordering_cost  # entries of L, flops, levels
time_front = _core._time_front


def graph_of(A):
    """ptr (int64) and ind (int32) of A + A^T without its diagonal."""
    return tuple(map(np.asarray, _core.symmetrize(A.indptr.astype(np.int64), A.indices.astype(np.int32))))


def analysis(A, definite):
    """A function that analyses A on the processor: seconds by stage, ordering and entries of L."""
    pattern = _core.canonical_from_columns(A.shape[0], A.indptr, A.indices)

    def analyze():
        symbolic = _core.analyze(pattern.ptr, pattern.ind, A.data, cholesky=definite)
        return dict(symbolic.stages), symbolic.ordering, symbolic.lnz

    return analyze


def method_phases(A, method):
    """Features of the model of a method of the CPU engine, what it predicts, and functions: factor, refactor, solve."""
    ptr, ind, values = A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data
    symbolic = _core.analyze(ptr, ind, values, method=method)
    pattern = _core.canonical_from_columns(A.shape[0], A.indptr, A.indices)
    factor = _core.factor(symbolic, pattern, values)
    b = A @ np.ones(A.shape[0])
    features = [1.0, A.shape[0], A.nnz, symbolic.lnz, symbolic.flops]
    predicted = _core.predict_seconds(method, A.shape[0], A.nnz, symbolic.lnz, symbolic.flops)
    calls = lambda: _core.factor(symbolic, pattern, values), lambda: factor.refactor(values), lambda: factor.solve(b)
    return features, predicted, calls


# Factors on a device


def choice_reason(factor):
    """Why this engine was chosen."""
    return factor.symbolic._choice.reason


def runs_on_device(factor):
    """Whether its answers come from a device, and not from the CPU engine that took over."""
    return factor.engine != "cpu" and not factor._core._on_cpu


def replay_seconds(factor, clock, phases=tuple(GRAPHS)):
    """Median seconds of a replay of graphs in GRAPHS, between CUDA events."""
    return {phase: graph_seconds(factor, clock, *GRAPHS[phase]) for phase in phases}


def graph_seconds(factor, clock, *key):
    """Median seconds of a replay of one graph."""
    core = factor._core
    with core._device:
        queue, graph = core._device.caller_queue(), core._recorded.graph(*key)
        return clock.device(lambda: queue.replay(graph))


def commands_by_kernel(factor, clock):
    """Seconds and number of launches by the name of the kernel, for the graphs of refactor and solve."""
    found = {}
    for phase in ("refactor", "solve"):
        kernels = found.setdefault(phase, {})
        for name, seconds in commands_by_time(factor, clock, *GRAPHS[phase]):
            entry = kernels.setdefault(name, {"seconds": 0.0, "launches": 0})
            entry["seconds"] += seconds
            entry["launches"] += 1
    return found


def commands_by_time(factor, clock, what, *key):
    """Name and median seconds of each command that is recorded for `what`."""
    core, runs = factor._core, []
    commands = getattr(core._recorded, what)
    with core._device:
        stream = clock.cuda.Stream(non_blocking=True)
        for _ in range(REPEAT):
            queue = timed_queue(stream, clock.cuda)
            with stream:
                clock.spin_for(SPIN_SECONDS)
            begin = queue.event()
            commands(queue, *key)
            stream.synchronize()
            pairs = itertools.pairwise([begin, *queue.events])
            runs.append([1e-3 * clock.cuda.get_elapsed_time(before, after) for before, after in pairs])
    medians = [statistics.median(run[k] for run in runs) for k in range(len(queue.names))]
    return list(zip(queue.names, medians, strict=True))


def timed_queue(stream, cuda):
    """A queue that notes what it is asked for and sets an event behind it."""
    from gpusplu.kernels.queue import Queue

    class TimedQueue(Queue):
        __slots__ = ("events", "names")

        def event(self):
            made = cuda.Event()
            made.record(stream)
            return made

        def note(self, name):
            self.names.append(name)
            self.events.append(self.event())

        def launch(self, kernel, *rest, early=False):  # one after another, as the events stand between
            super().launch(kernel, *rest)
            self.note(kernel.name)

        def copy(self, *arguments):
            super().copy(*arguments)
            self.note("copy")

        def clear(self, *arguments):
            super().clear(*arguments)
            self.note("clear")

        def fork(self):  # one command after another
            return self

        def join(self, side):
            pass

    queue = TimedQueue(stream, cuda)
    queue.names, queue.events = [], []
    return queue


@contextmanager
def copies_of_values():
    """Within, graphs copy values of the host instead of moving them by kernels."""

    def copied(program, queue, *arrays):
        for to, source, count in arrays:
            queue.copy(to, source, count * program.dtype.itemsize)

    with set_for_now(Program, move=copied):
        yield


@contextmanager
def set_for_now(owner, **attributes):
    """Within, these attributes of a class are others."""
    before = {name: owner.__dict__[name] for name in attributes if name in owner.__dict__}
    for name, value in attributes.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name in attributes:
            setattr(owner, name, before[name]) if name in before else delattr(owner, name)


# Fronts

FRONT_ARRAYS = ("width", "rows", "parent", "level", "phase")


def front_plan(factor):
    """What the plan of a factor of the supernodal engine says of each front, and of all together."""
    plan = factor.symbolic._plan
    return SimpleNamespace(
        **{name: np.asarray(getattr(plan, name), np.int64) for name in FRONT_ARRAYS},
        cholesky=plan.cholesky,
        phase_seconds=np.asarray(plan.phase_seconds),
        factor_size=plan.factor_size,
        block_size=plan.block_size,
        n_segments=len(plan.segment_ptr) - 1,
    )


def needed_bytes(factor):
    """Device memory of a factor of fronts if nothing is saved."""
    return front_memory.needed_bytes(factor.symbolic._plan, factor.symbolic._pattern)


def least_bytes(symbolic, columns):
    """Device memory that a factor of fronts can hardly do without, with this many right-hand sides."""
    plan, pattern = symbolic._plan, symbolic._pattern
    least = make_plan(symbolic._core, pattern, plan.scalar, replace(plan.limits, memory_bytes=1))
    return front_memory.needed_bytes(least, pattern) + front_memory.all_vector_bytes(least, columns)


# Columns

FORCED = {
    **{f"glu {mode}": (GluProgram, {"forced_mode": mode}) for mode in GLU_MODES},
    "sflu by levels": (SfluProgram, {"by_levels": True}),
}


def forced(way):
    """A context in which a column engine goes a way of FORCED."""
    program, attributes = FORCED[way]
    return set_for_now(program, **attributes)


def forced_glu(mode, costs):
    """A context in which glu uses one mode only (None: as it chooses) and other constants of its model."""
    return set_for_now(GluProgram, forced_mode=mode, costs=costs)


def forced_division(division):
    """A context in which crisscross begins its corner at this column."""
    return set_for_now(CrisscrossProgram, forced=division)


def columns_apart():
    """A context in which every column is a group of its own."""
    return set_for_now(GroupedProgram, grouped=False)


def program_of(factor):
    return factor._core._recorded.program


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
    """A column engine's program made once more, changed, with a factor's values and some right-hand side.

    Parameters
    ----------
    factor : Factor
        Of a column engine.
    kind : type
        Of the program.
    clock : HostClock
    """

    def __init__(self, factor, kind, clock):
        first = factor._core._recorded
        self.clock, values = clock, first.values()
        b = np.random.default_rng(0).normal(size=first.program.n).astype(first.program.dtype)
        self.program = kind(first.program.device, first.program.plan, first.program.pattern, first.program.dtype)
        self.program.prepare()
        self.recorded = recorded = Recorded(self.program)
        with recorded.device:
            self.queue = recorded.begin()
            recorded.send(self.queue, recorded.buffers.values.pointer, values)
            recorded.factor_now(self.queue)
            recorded.send(self.queue, recorded.buffers.vectors(1).b.pointer, b)
            self.queue.replay(recorded.graph("solve", 0, 1, 1))
            self.queue.synchronize()
            self.error = float(recorded.backward_error())

    def seconds(self, *key):
        """Of a replay of the graph of this key; with a function in its place of what that records."""
        with self.recorded.device:
            make = self.recorded.device.record if callable(key[0]) else self.recorded.graph
            graph = make(*key)
            return self.clock.device(lambda: self.queue.replay(graph))

    def result(self):
        """Bytes of factor and solution."""
        program, buffers = self.program, self.recorded.buffers
        arrays = [np.empty(program.plan.nnz, program.dtype), np.empty(program.n, program.dtype)]
        with self.recorded.device:
            for array, buffer in zip(arrays, (buffers.own["factor"], buffers.vectors(1).x), strict=True):
                self.queue.copy(array.ctypes.data, buffer.pointer, array.nbytes)
            self.queue.synchronize()
        return [array.tobytes() for array in arrays]


def column_size(factor):
    """Columns, levels and multiply-adds of a plan of columns."""
    plan = program_of(factor).plan
    return plan.n, plan.n_levels, plan.flops


def sflu_variant(factor, attributes, clock):
    """Error, launches of a factorization, seconds of refactorization and solve; bytes of the result."""
    made = Variant(factor, type("Changed", (SfluProgram,), attributes), clock)
    found = {"error": made.error, "launches": len(made.program._factor_begins) - 1}
    found |= {"refactor_s": made.seconds("factor"), "solve_s": made.seconds("solve", 0, 1, 0)}
    return found, made.result()


class Divided(CrisscrossProgram):
    """Whose columns before the division can be factored by themselves."""

    alone = False

    @property
    def _factor_begins(self):
        begins = super()._factor_begins
        return self.groups.level_ptr[[0, -2]] if self.alone and self.corner else begins

    def factor_before(self, queue, buffers, values):
        self.alone = True
        self.factor_columns(queue, buffers, values)
        self.alone = False


def crisscross_variant(factor, corner, clock):
    """Seconds and predictions with a corner of this many columns; the model's if None."""
    n = program_of(factor).n
    kind = type("Changed", (Divided,), {"forced": None if corner is None else n - corner})
    made = Variant(factor, kind, clock)
    program, buffers = made.program, made.recorded.buffers
    steps = {"columns_s": program.factor_before, "sparse_s": program.factor_columns, "factor_s": program.factor}
    found = {
        name: made.seconds(lambda queue, step=step: step(queue, buffers, buffers.values))
        for name, step in steps.items()
    }
    found |= {"solve_s": made.seconds("solve", 0, 1, 0), "step_s": made.seconds("refactor_solve", 0, 1, 0)}
    found |= {"corner": n - program.division, "terms": int(program.corner_terms), "error": made.error}
    sparse, dense = program._predicted
    return found | {"predicted_sparse_s": sparse, "predicted_dense_s": dense}


def column_plan(A, ordering):
    """The plan of the column engines before columns are moved to a corner; needs no device."""
    pattern = gs.analyze(A, engine="cpu")._pattern
    values = matrix.values_for(pattern, A.data, False)
    core = _core.analyze_columns(pattern.ptr, pattern.ind, values, ordering=ordering, perm=None, matching=True)
    cpu = _core.factor(core, pattern.core, values, pivot_threshold=0.1, pivoting="auto", refine="auto")
    scales = cpu.symbolic.row_scale, cpu.symbolic.col_scale
    return make_column_plan(pattern, cpu.row_perm, cpu.col_perm, *scales)
