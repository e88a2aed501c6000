"""Everything that measurements need of gpusplu beyond its public functions; no other file imports its internals."""

import itertools
import statistics
import sys
import threading
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import gpusplu as gs
from gpusplu import _core
from gpusplu.common import matrix
from gpusplu.common.matrix import Pattern
from gpusplu.common.options import Options
from gpusplu.cost.calibration import costs_of, for_core
from gpusplu.cost.features import factor_features, predict
from gpusplu.cost.table import shipped
from gpusplu.cuda import devices
from gpusplu.cuda.stream import Stream
from gpusplu.dispatch.migration import THREAD
from gpusplu.engines import registry
from gpusplu.engines.crisscross import model
from gpusplu.engines.crisscross.engine import CrisscrossEngine
from gpusplu.engines.crisscross.program import CrisscrossProgram
from gpusplu.engines.device.call import Call, CommandGraphs
from gpusplu.engines.glu import program as glu_program
from gpusplu.engines.glu.engine import GluEngine
from gpusplu.engines.problem import Problem
from gpusplu.engines.processor import cpu_factor
from gpusplu.engines.sflu.engine import SfluEngine
from gpusplu.engines.sflu.program import SfluProgram
from gpusplu.engines.sflu.program import Tuning as SfluTuning
from gpusplu.engines.supernodal import front_mapping, lockstep, memory
from gpusplu.engines.supernodal.plan import Limits, make_plan

# Stages and methods of the core

num_threads = _core.num_threads
map_fronts = front_mapping.map_fronts
GLU_MODES = glu_program.MODES
TrailingCosts, predict_divisions = model.TrailingCosts, model.predict_divisions
TRAILING_COSTS = model.trailing_costs(shipped())


def set_num_threads(count):
    """For the core, and for the stages of it, which have threads of their own."""
    _core.set_num_threads(count)
    if "gpusplu._core_testing" in sys.modules:
        stages().set_num_threads(count)


def stages():
    """Stages of the core by themselves; only a checkout has them."""
    checkout = str(Path(__file__).parents[1] / "gpusplu")
    if checkout not in gs.__path__:
        gs.__path__.append(checkout)
    new = "gpusplu._core_testing" not in sys.modules
    from gpusplu import _core_testing

    if new:
        _core_testing.set_num_threads(_core.num_threads())
    return _core_testing


def minimum_degree(ptr, ind):
    return stages().amd(ptr, ind)


def nested_dissection(ptr, ind, threads):
    stages().set_num_threads(threads)
    return stages().nested_dissection(ptr, ind)


def ordering_cost(ptr, ind, perm):
    """Entries of L, flops, levels."""
    return stages().ordering_cost(ptr, ind, perm)


def time_front(*arguments, **options):
    return stages().time_front(*arguments, **options)


def graph_of(A):
    """ptr (int64) and ind (int32) of A + A^T without its diagonal."""
    return tuple(map(np.asarray, stages().symmetrize(A.indptr.astype(np.int64), A.indices.astype(np.int32))))


def method_phases(A, method):
    """Features of the model of a method of the CPU engine, what it predicts, and functions: factor, refactor, solve."""
    ptr, ind, values = A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data
    how = {"ldlt": True} if method == "ldlt" else {"method": method}
    symbolic = _core.analyze(ptr, ind, values, for_core(), **how)
    pattern = _core.canonical("csc", A.shape[0], A.indptr, A.indices)
    factor = cpu_factor(symbolic, Pattern(pattern), values, Options())
    b = A @ np.ones(A.shape[0])
    features = [*map(factor_features(symbolic).get, ("call", "rows", "entries", "fill", "flops"))]
    predicted = predict(symbolic, values.itemsize, costs_of())[2:5]
    calls = (
        lambda: cpu_factor(symbolic, Pattern(pattern), values, Options()),
        lambda: factor.refactor(values),
        lambda: factor.solve(b),
    )
    return features, predicted, calls


# Factors on a device

SPIN_SECONDS = 5e-3
REPEAT = 7
# Phases and their calls: A x = b, one right-hand side, backward error not measured or measured.
GRAPHS = {
    "refactor": Call("new"),
    "solve": Call(solve=True),
    "step": Call("new", solve=True),
    "solve_certified": Call(solve=True, measured=True),
    "step_certified": Call("new", solve=True, measured=True),
}


def solve_call(columns):
    """A solve with this many right-hand sides, without backward errors."""
    return Call(solve=True, nrhs=columns)


def captured(function):
    """What launches a graph of what `function` asks of the emulated device."""
    with devices.open_device().capture() as graph:
        function()
    return graph.launch


def emulate():
    """Put the emulator of the tests in place of the device: PYTHONPATH has to name the folder tests."""
    from support import fake_cupy
    from support.emulated_device import EmulatedDevice

    device = EmulatedDevice()
    sys.modules["cupy"] = fake_cupy
    devices.open_device = lambda which=None: device


def engine_names(definite):
    """The engines that factor such matrices."""
    return registry.names_for("cholesky" if definite else "lu")


def join_moves():
    """Wait for threads that prepare moves."""
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join()


def choice_reason(factor):
    """Why this engine was chosen."""
    return factor.symbolic.choice.reason


def runs_on_device(factor):
    """Whether its answers come from a device, and not from the CPU engine that took over."""
    return factor.engine != "cpu" and not factor.parts()[0].on_cpu


def replay_seconds(factor, clock, phases=tuple(GRAPHS)):
    """Median seconds of a replay of graphs in GRAPHS, between CUDA events."""
    return {phase: graph_seconds(factor, clock, GRAPHS[phase]) for phase in phases}


def graph_seconds(factor, clock, call):
    """Median seconds of a replay of one graph."""
    commands = factor.parts()[0].commands
    with commands.device:
        stream, graph = commands.device.caller_stream(), commands.graph(call)
        return clock.device(lambda: stream.replay(graph))


def commands_by_kernel(factor, clock):
    """Seconds and number of launches by the name of the kernel, for the graphs of refactor and solve."""
    found = {}
    for phase in ("refactor", "solve"):
        kernels = found.setdefault(phase, {})
        for name, seconds in commands_by_time(factor, clock, GRAPHS[phase]):
            entry = kernels.setdefault(name, {"seconds": 0.0, "launches": 0})
            entry["seconds"] += seconds
            entry["launches"] += 1
    return found


def commands_by_time(factor, clock, call):
    """Name and median seconds of each command of a call."""
    commands, runs = factor.parts()[0].commands, []
    with commands.device:
        commands.graph(call)  # uploads and loads what the commands need
        stream = clock.cuda.Stream(non_blocking=True)
        for _ in range(REPEAT):
            timed = TimedStream(stream, clock.cuda)
            with stream:
                clock.spin_for(SPIN_SECONDS)
            begin = timed.event()
            commands.add_commands(timed, call)
            stream.synchronize()
            pairs = itertools.pairwise([begin, *timed.events])
            runs.append([1e-3 * clock.cuda.get_elapsed_time(before, after) for before, after in pairs])
    medians = [statistics.median(run[k] for run in runs) for k in range(len(timed.names))]
    return list(zip(timed.names, medians, strict=True))


class TimedStream(Stream):
    """Notes what it is asked for and sets an event behind it."""

    __slots__ = ("_cuda", "events", "names")

    def __init__(self, stream, cuda):
        super().__init__(stream, cuda)
        self._cuda, self.names, self.events = cuda, [], []

    def event(self):
        made = self._cuda.Event()
        made.record(self._stream)
        return made

    def note(self, name):
        self.names.append(name)
        self.events.append(self.event())

    def launch(self, kernel, *rest, dependent=False):  # one after another, as the events stand between
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


# Batches


def engine_batch(A, definite, count, grain=None, rows=None):
    """The supernodal engine's batch for `count` systems like A; `grain` and `rows` instead of its own."""
    gs.cache_clear()
    if grain:
        lockstep.LEAST_GRAIN = lockstep.MOST_GRAIN = grain
    if rows:
        lockstep.TEAM_ROWS, lockstep.WIDE_ROWS, lockstep.SINGLE_WARP_ROWS = rows
    problem, analysis = gs.analyze(A, cholesky=definite, engine="supernodal").parts()
    return registry.named("supernodal").batch(problem, analysis, count)


def batch_kernels(batch, values, b, clock):
    """Microseconds of every launch of a refactorization and a solve, in their order, by CUDA events."""
    import cupy

    marks, launch = [], Stream.launch

    def marked(self, kernel, *arguments, **options):
        events = cupy.cuda.Event(), cupy.cuda.Event()
        events[0].record()
        launch(self, kernel, *arguments, **options)
        events[1].record()
        marks.append((kernel.name, *events))

    Stream.launch = marked
    try:
        clock.spin_for(2e-3)
        batch.refactor(values)
        batch.solve(b)
        clock.synchronize()
    finally:
        Stream.launch = launch
    return ", ".join(f"{name} {1e3 * cupy.cuda.get_elapsed_time(*events):.0f}" for name, *events in marks)


# Plans of fronts, and programs of the column engines with other settings than they choose


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
    "glu": (GluEngine, glu_program.Tuning),
    "sflu": (SfluEngine, SfluTuning),
    "crisscross": (CrisscrossEngine, SfluTuning),
}


def tuned(engine, division=None, **tuning):
    """A context in which a column engine does not choose these members of its class Tuning itself.

    `division`: where the trailing block of crisscross begins.
    """
    kind, tuning_of = ENGINES[engine]
    divided = {} if division is None else {"division": division}
    return registry.registered(kind(tuning=tuning_of(**tuning), **divided))


def program_of(factor):
    return factor.parts()[0].commands.program


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
        first = factor.parts()[0].commands
        self.clock, values = clock, first.values()
        b = np.random.default_rng(0).normal(size=first.program.n).astype(first.program.dtype)
        known = first.program.device, first.program.plan, first.program.pattern, first.program.dtype
        self.program = kind(*known, **options)
        self.program.prepare()
        self.commands = commands = CommandGraphs(self.program)
        with commands.device:
            self.stream = commands.begin()
            commands.send(self.stream, commands.buffers.values.pointer, values)
            commands.factor_now(self.stream)
            commands.send(self.stream, commands.buffers.vectors(1).b.pointer, b)
            self.stream.replay(commands.graph(Call(solve=True, measured=True)))
            self.stream.synchronize()
            self.error = float(commands.backward_error())

    def seconds(self, call):
        """Of a replay of the graph of a call, or of the commands that a function adds."""
        with self.commands.device:
            make = self.commands.device.build_graph if callable(call) else self.commands.graph
            graph = make(call)
            return self.clock.device(lambda: self.stream.replay(graph))

    def result(self):
        """Bytes of factor and solution."""
        program, buffers = self.program, self.commands.buffers
        arrays = [np.empty(program.plan.nnz, program.dtype), np.empty(program.n, program.dtype)]
        with self.commands.device:
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
    found |= {"refactor_s": made.seconds(Call("held")), "solve_s": made.seconds(Call(solve=True))}
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
    program, buffers = made.program, made.commands.buffers
    steps = {
        "columns_s": columns_before(program).run,
        "sparse_s": program.factorization.run,
        "factor_s": program.factor,
    }
    found = {
        name: made.seconds(lambda stream, step=step: step(stream, buffers, buffers.values))
        for name, step in steps.items()
    }
    found |= {"solve_s": made.seconds(Call(solve=True)), "step_s": made.seconds(Call("new", solve=True))}
    terms = program.plan.count_trailing_terms(program.division)
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


# Schur complements


def by_solves(symbolic):
    """The analysis, whose factors are those of the interior and solve for the complement."""
    symbolic.whole = None
    return symbolic
