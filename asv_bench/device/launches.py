"""The graphs of a device factor: seconds of a replay, and where they go, command by command.

For the second the commands that were recorded run once more outside of any graph, one after another, with CUDA events
between them. A kernel that spins first gives the host the time to enqueue everything, so that no gap of Python's
counts. An event costs about a microsecond, and commands that a graph runs side by side are measured in turn: the sum
may exceed the replay.
"""

import itertools
import statistics

SPIN_SECONDS = 5e-3
REPEAT = 7
# Phase and what engines/recorded.py records for it: A x = b, one right-hand side, backward error not measured or
# measured.
GRAPHS = {
    "refactor": ("refactor",),
    "solve": ("solve", 0, 1, 0),
    "step": ("refactor_solve", 0, 1, 0),
    "solve_certified": ("solve", 0, 1, 1),
    "step_certified": ("refactor_solve", 0, 1, 1),
}


def replay_seconds(factor, clock, phases=tuple(GRAPHS)):
    """Median seconds of a replay of graphs in GRAPHS, between CUDA events."""
    core, found = factor._core, {}
    with core._device:
        queue = core._device.caller_queue()
        for phase in phases:
            key = GRAPHS[phase]
            graph = core._recorded.graph(*key)
            found[phase] = clock.device(lambda graph=graph: queue.replay(graph))
    return found


def commands_by_kernel(factor, clock):
    """Seconds and number of launches by the name of the kernel, for the graphs of refactor and solve."""
    core, found = factor._core, {}
    for phase in ("refactor", "solve"):
        what, *key = GRAPHS[phase]
        commands = getattr(core._recorded, what)
        kernels = found.setdefault(phase, {})
        for name, seconds in commands_by_time(core._device, lambda queue: commands(queue, *key), clock):  # noqa: B023
            entry = kernels.setdefault(name, {"seconds": 0.0, "launches": 0})
            entry["seconds"] += seconds
            entry["launches"] += 1
    return found


def commands_by_time(device, commands, clock):
    """Name and median seconds of each command that the function `commands` asks of a queue.

    Parameters
    ----------
    device : gpusplu.kernels.launch.Device
    commands : callable
        As `Device.record` takes it.
    clock : clocks.DeviceClock
    """
    from gpusplu.kernels.queue import Queue

    class TimedQueue(Queue):
        """Notes what it is asked for and sets an event behind it."""

        __slots__ = ("events", "names")

        def note(self, name):
            self.names.append(name)
            self.events.append(event())

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

    def event():
        made = cuda.Event()
        made.record(stream)
        return made

    cuda = clock.cuda
    runs = []
    with device:
        stream = cuda.Stream(non_blocking=True)
        for _ in range(REPEAT):
            queue = TimedQueue(stream, cuda)
            queue.names, queue.events = [], []
            with stream:
                clock.spin((1,), (1,), (int(SPIN_SECONDS * 1e9),))
            begin = event()
            commands(queue)
            stream.synchronize()
            pairs = itertools.pairwise([begin, *queue.events])
            runs.append([1e-3 * cuda.get_elapsed_time(before, after) for before, after in pairs])
    medians = [statistics.median(run[k] for run in runs) for k in range(len(queue.names))]
    return list(zip(queue.names, medians, strict=True))
