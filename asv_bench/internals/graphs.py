"""Factors on a device: the graphs they replay, timed, and taken apart command by command.

The commands that were recorded run once more outside of any graph, one after another, with CUDA events between them. A
kernel that spins first gives the host the time to enqueue everything, so that no gap of Python's counts. An event costs
about a microsecond, and commands that a graph runs side by side are measured in turn: the sum may exceed the replay.
"""

import itertools
import statistics
import sys
import threading
from contextlib import contextmanager

from gpusplu.cuda import devices
from gpusplu.cuda.stream import Stream
from gpusplu.dispatch.background import THREAD
from gpusplu.engines import registry
from gpusplu.engines.device.program import Program

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
    return {phase: graph_seconds(factor, clock, *GRAPHS[phase]) for phase in phases}


def graph_seconds(factor, clock, *key):
    """Median seconds of a replay of one graph."""
    recorded = factor.parts()[0].recorded
    with recorded.device:
        stream, graph = recorded.device.caller_stream(), recorded.graph(*key)
        return clock.device(lambda: stream.replay(graph))


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
    recorded, runs = factor.parts()[0].recorded, []
    commands = getattr(recorded, what)
    with recorded.device:
        recorded.graph(what, *key)  # uploads and loads what the commands need
        stream = clock.cuda.Stream(non_blocking=True)
        for _ in range(REPEAT):
            timed = TimedStream(stream, clock.cuda)
            with stream:
                clock.spin_for(SPIN_SECONDS)
            begin = timed.event()
            commands(timed, *key)
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


@contextmanager
def copies_of_values():
    """Within, graphs copy values of the host instead of moving them by kernels."""

    def copied(program, stream, *arrays):
        for to, source, count in arrays:
            stream.copy(to, source, count * program.dtype.itemsize)

    before, Program.move = Program.move, copied
    try:
        yield
    finally:
        Program.move = before
