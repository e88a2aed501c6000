"""Where the time of a recorded graph goes: its commands once more, one after another, with CUDA events between them.

`recorded` notes what the engine records while it is active; `commands_by_time` runs that again outside of any graph. A
kernel that spins first gives the host the time to enqueue everything, so that no gap of Python's counts. An event costs
about a microsecond, and commands that the graph runs side by side are measured in turn: the sum may exceed the graph.
"""

import contextlib
import itertools
import statistics

SPIN_SECONDS = 5e-3
REPEAT = 7


@contextlib.contextmanager
def recorded():
    """A list that every call of Device.record appends its commands to, with the device."""
    from gpusplu.kernels import launch

    original, found = launch.Device.record, []

    def record(self, commands):
        found.append((self, commands))
        return original(self, commands)

    launch.Device.record = record
    try:
        yield found
    finally:
        launch.Device.record = original


def commands_by_time(device, commands, clock):
    """Name, grid and median seconds of each command that the function `commands` asks of a queue.

    Parameters
    ----------
    device : gpusplu.kernels.launch.Device
    commands : callable
        As `Device.record` takes it.
    clock : clocks.DeviceClock
    """
    from gpusplu.kernels.launch import Queue

    class TimedQueue(Queue):
        """Notes what it is asked for and sets an event behind it."""

        __slots__ = ("events", "names")

        def note(self, name, grid):
            self.names.append((name, grid))
            self.events.append(event())

        def launch(self, kernel, grid, *rest):
            super().launch(kernel, grid, *rest)
            self.note(kernel.name, grid)

        def copy(self, *arguments):
            super().copy(*arguments)
            self.note("copy", 0)

        def clear(self, *arguments):
            super().clear(*arguments)
            self.note("clear", 0)

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
    return [(name, grid, seconds) for (name, grid), seconds in zip(queue.names, medians, strict=True)]


def by_kernel(timed):
    """Seconds and launches of each kernel of a graph, in order of first appearance."""
    found = {}
    for name, _, seconds in timed:
        entry = found.setdefault(name, {"seconds": 0.0, "launches": 0})
        entry["seconds"] += seconds
        entry["launches"] += 1
    return found
