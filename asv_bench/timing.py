"""Seconds on the host and on the device, repetition and means.

`device` is the time between two CUDA events around one call. A kernel that spins first keeps the stream busy while the
host enqueues the call, so that the time is that of the device and not of Python. `wall` is the time from the call to
the end of a synchronization. Both are medians after a warm-up, which also raises the clock rates of the device. Without
a device `device` is `wall`; the same suites measure the CPU engine.
"""

import gc
import statistics
import time

import numpy as np

from gpusplu.common.timing import backward_error, timed

__all__ = ["BriefClock", "DeviceClock", "EmulatedClock", "HostClock"]
__all__ += ["backward_error", "best", "geomean", "interleaved", "timed"]

SPIN = r"""
extern "C" __global__ void spin(long long nanoseconds) {
  long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - start < nanoseconds);
}
"""
LONG = 1.0  # seconds of a call that is made once
SPIN_SECONDS = 400e-6  # longer than the host needs to enqueue a refactorization and a solve


class HostClock:
    """Without a device.

    Parameters
    ----------
    budget : float, optional
        How long one measurement repeats [s], a third of it for warming up.
    """

    on_device = has_events = False

    def __init__(self, budget=0.2):
        self.budget = budget

    def put(self, array):
        """The array, on the device if this clock is for one."""
        return array

    def synchronize(self):
        pass

    def call(self, function):
        """Seconds and result of one call."""
        start = time.perf_counter()
        result = function()
        self.synchronize()
        return time.perf_counter() - start, result

    def once(self, function):
        """The same, with nothing running before and no garbage collection inside."""
        gc.collect()
        self.synchronize()
        return self.call(function)

    def repeats(self, function):
        """Warm up; returns how many calls fit into the budget, 3 to 200."""
        took, _ = self.once(function)
        end = time.perf_counter() + self.budget / 3
        while time.perf_counter() < end:
            took = min(took, self.call(function)[0])
        return self.calls(took)

    def calls(self, seconds):
        """Number of calls that fit into the budget, if each takes this many seconds."""
        return int(min(200, max(3, self.budget / seconds)))

    def least(self, function):
        """Least seconds of repeated calls on the host."""
        return min(self.call(function)[0] for _ in range(self.repeats(function)))

    def wall(self, function):
        return statistics.median(self.call(function)[0] for _ in range(self.repeats(function)))

    def device(self, function):
        return self.wall(function)


class BriefClock(HostClock):
    """Counts the first call as well, and makes no other one if that took more than LONG seconds."""

    def calls(self, seconds):
        return int(min(200, max(seconds < LONG, self.budget / seconds)))

    def repeats(self, function):
        return max(1, self.calls(self.once(function)[0]))

    def least(self, function):
        took, _ = self.once(function)
        return min([took, *(self.call(function)[0] for _ in range(self.calls(took)))])


class EmulatedClock(HostClock):
    """For tests in the emulator: arrays are on the emulated device, and each function is called once."""

    on_device = True

    def put(self, array):
        import cupy

        return cupy.asarray(array)

    def repeats(self, function):
        return 1

    def capture(self, function):
        """A function that launches a graph of what `function` enqueues on the current stream."""
        from . import internals

        return internals.captured(function)


class DeviceClock(HostClock):
    """With CuPy, on its current stream."""

    on_device = has_events = True
    put = EmulatedClock.put

    def __init__(self, budget=0.2):
        import cupy

        super().__init__(budget)
        self.cuda = cupy.cuda
        self.spin = cupy.RawKernel(SPIN, "spin")

    def synchronize(self):
        self.cuda.get_current_stream().synchronize()

    def spin_for(self, seconds):
        """Keep the current stream busy, so that the host can enqueue further work."""
        self.spin((1,), (1,), (int(seconds * 1e9),))

    def capture(self, function):
        stream = self.cuda.Stream(non_blocking=True)
        self.synchronize()
        with stream:
            stream.begin_capture()
            function()
            graph = stream.end_capture()
        return lambda: graph.launch(self.cuda.get_current_stream())

    def device(self, function):
        start, end = self.cuda.Event(), self.cuda.Event()
        seconds = []
        for _ in range(min(self.repeats(function), max(3, int(self.budget / SPIN_SECONDS)))):
            self.spin_for(SPIN_SECONDS)
            start.record()
            function()
            end.record()
            end.synchronize()
            seconds.append(1e-3 * self.cuda.get_elapsed_time(start, end))
        return statistics.median(seconds)


def interleaved(functions, repeat):
    """Least seconds of each function; the functions alternate, so that disturbances affect all of them."""
    least = [float("inf")] * len(functions)
    for _ in range(repeat):
        for k, function in enumerate(functions):
            least[k] = min(least[k], timed(function)[0])
    return least


def best(function, repeat):
    """Least seconds of repeated calls, with warm caches and threads as in a simulator."""
    gc.collect()
    least = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        least = min(least, time.perf_counter() - start)
    return least


def geomean(ratios):
    """Geometric mean."""
    return float(np.exp(np.mean(np.log(ratios))))
