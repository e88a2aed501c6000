"""Seconds on the device and on the host, for what is enqueued on CuPy's current stream and for plain host code.

`device` is the time between two CUDA events around one call. A kernel that spins first keeps the stream busy while the
host enqueues the rest, so that what is measured is the work of the device and not how fast Python is. `wall` is what a
caller waits from the call to the end of a synchronization. Both are medians after a warm-up that also brings the clocks
of the device up. Without a device only `wall` exists: the CPU engine is measured with the same script.
"""

import gc
import statistics
import time

SPIN = r"""
extern "C" __global__ void spin(long long nanoseconds) {
  long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - start < nanoseconds);
}
"""
SPIN_SECONDS = 400e-6  # longer than the host needs to enqueue a refactorization and a solve


class HostClock:
    """Without a device. `budget` is how long one measurement repeats [s], a third of it for warming up."""

    budget = 0.2

    def synchronize(self):
        pass

    def call(self, function):
        """Seconds and result of one call."""
        start = time.perf_counter()
        result = function()
        self.synchronize()
        return time.perf_counter() - start, result

    def once(self, function):
        """The same, with nothing under way and no garbage collection inside."""
        gc.collect()
        self.synchronize()
        return self.call(function)

    def repeats(self, function):
        """Call until warm; how many calls fit into the budget, 3 to 200."""
        took, _ = self.once(function)
        end = time.perf_counter() + self.budget / 3
        while time.perf_counter() < end:
            took = min(took, self.call(function)[0])
        return int(min(200, max(3, self.budget / took)))

    def wall(self, function):
        return statistics.median(self.call(function)[0] for _ in range(self.repeats(function)))

    def device(self, function):
        return self.wall(function)


class DeviceClock(HostClock):
    """With CuPy, on its current stream."""

    def __init__(self):
        import cupy

        self.cuda = cupy.cuda
        self.spin = cupy.RawKernel(SPIN, "spin")

    def synchronize(self):
        self.cuda.get_current_stream().synchronize()

    def device(self, function):
        start, end = self.cuda.Event(), self.cuda.Event()
        seconds = []
        for _ in range(min(self.repeats(function), max(3, int(self.budget / SPIN_SECONDS)))):
            self.spin((1,), (1,), (int(SPIN_SECONDS * 1e9),))
            start.record()
            function()
            end.record()
            end.synchronize()
            seconds.append(1e-3 * self.cuda.get_elapsed_time(start, end))
        return statistics.median(seconds)
