"""Threads whose processors others keep busy."""

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import _core_testing, gallery
from support.fronts import Fronts

TASKS = Path("/proc/self/task")


MS = 1_000_000  # ns


class Jobs:
    """Jobs of one kind and size, one after the other, on a clock of their own."""

    def __init__(self, size=2):
        self.choice, self.now, self.threads, self.size = _core_testing.ThreadChoice(), MS, [], size
        self.work = None

    def next(self, time_of, taken=False):
        """One job, which takes time_of(threads) milliseconds."""
        self.work = self.work or time_of(1)  # an estimate, which does not change with the neighbours
        threads = self.choice.choose(self.size, self.now, taken)
        elapsed = int(time_of(threads) * MS)
        self.now += elapsed
        self.choice.record(1e-3 * self.work, elapsed, self.now, taken)
        self.threads.append(threads)

    def repeat(self, count, time_of, taken=False):
        """So many of them: their threads."""
        for _ in range(count):
            self.next(time_of, taken)
        return self.threads[-count:]

    def run(self, count, all_threads, one_thread, taken=False):
        """So many jobs; milliseconds with several threads (one number, or one for each job) and with one.

        taken: whether others want all processors.
        """
        times = [all_threads] * count if np.isscalar(all_threads) else all_threads
        self.work = self.work or one_thread
        for time_of_all in times:
            self.next(lambda threads, several=time_of_all: one_thread if threads == 1 else several, taken)
        return ["one" if threads == 1 else "all" for threads in self.threads[-len(times) :]]


@pytest.mark.parametrize("time", [0.3, 1.0, 6.0, 30.0, 500.0])
def test_one_preemption_takes_no_threads(time):
    """Milliseconds in which the system ran something else."""
    jobs = Jobs()
    jobs.run(50, all_threads=time, one_thread=1.7 * time)
    threads = jobs.run(51, all_threads=[time + 4, *[time] * 50], one_thread=1.7 * time)
    assert threads.count("one") <= (1 if time < 1 else 0)  # a trial, where it takes less than the preemption


def test_jobs_that_wait_for_neighbours_are_done_by_one_thread():
    """Rates say so: 3 ms instead of 0.5."""
    jobs = Jobs()
    jobs.run(20, all_threads=0.3, one_thread=0.5)
    begin = jobs.now
    threads = jobs.run(1000, all_threads=3.0, one_thread=0.5)
    assert threads[-900:].count("one") > 850
    assert (jobs.now - begin) / 1000 <= 1.3 * 0.5 * MS


def test_short_jobs_that_neighbours_make_long_are_done_by_one_thread():
    """Refactorizations by columns wait for every thread: 0.6 ms on 16 idle cores, 100 ms beside 16 busy processes."""
    jobs = Jobs(size=16)
    jobs.run(50, all_threads=0.6, one_thread=1.7)
    jobs.run(20, all_threads=100.0, one_thread=3.0, taken=True)
    begin, threads = jobs.now, jobs.run(1000, all_threads=100.0, one_thread=3.0, taken=True)
    assert threads.count("one") > 980
    assert (jobs.now - begin) / 1000 <= 1.3 * 3 * MS


@pytest.mark.parametrize(("all_threads", "one_thread"), [(100.0, 3.0), (3.0, 0.5), (1.5, 1.0)])
def test_a_process_that_starts_beside_busy_ones_tries_one_thread(all_threads, one_thread):
    """It knows no better rate of all threads."""
    jobs = Jobs(size=16)
    jobs.run(2000, all_threads, one_thread, taken=True)
    assert jobs.now / 2000 <= 1.15 * one_thread * MS


def test_the_first_job_with_one_thread_does_not_count():
    """Its data are in the caches of other processors, and another process has begun to use its own."""
    jobs = Jobs(size=16)
    for _ in range(1000):
        cold = bool(jobs.threads) and jobs.threads[-1] > 1
        jobs.next(lambda threads, cold=cold: 10.5 if threads > 1 else 25.0 if cold else 5.6, taken=True)
    assert jobs.now / 1000 <= 1.2 * 5.6 * MS


def test_one_thread_is_left_when_it_turns_out_to_be_slower():
    """Its jobs vary, and one that was fast began it."""
    jobs, noise = Jobs(size=16), np.random.default_rng(0)
    jobs.repeat(4000, lambda threads: 0.5 if threads > 1 else noise.choice([0.3, 1.2]), taken=True)
    assert jobs.now / 4000 <= 1.05 * 0.5 * MS


def test_a_few_jobs_that_lose_their_processors():
    """Solves of 0.3 ms: one in thirty takes 20 ms."""
    jobs, times = Jobs(size=16), np.where(np.random.default_rng(0).random(10_000) < 1 / 30, 20.0, 0.15)
    jobs.run(len(times), times, one_thread=0.3, taken=True)
    assert jobs.now / len(times) <= 1.3 * 0.3 * MS


@pytest.mark.parametrize(("all_threads", "one_thread"), [(0.3, 0.5), (8.0, 12.0), (60.0, 300.0)])
def test_trials_of_one_thread_beside_busy_processes_cost_little(all_threads, one_thread):
    jobs = Jobs(size=16)
    jobs.run(500, all_threads, one_thread, taken=True)
    assert jobs.now / 500 <= 1.02 * all_threads * MS


def test_all_threads_are_measured_every_quarter_of_a_second_where_processors_are_taken():
    """A measurement takes the time of many jobs there."""
    jobs = Jobs()
    jobs.run(20, all_threads=0.3, one_thread=0.5)
    jobs.run(200, all_threads=20.0, one_thread=0.5, taken=True)
    begin, threads = jobs.now, jobs.run(4000, all_threads=20.0, one_thread=0.5, taken=True)
    assert (jobs.now - begin) / 4000 <= 1.15 * 0.5 * MS
    assert threads.count("all") >= 4000 * 0.5 / 300


@pytest.mark.parametrize("time", [0.05, 0.5, 5.0, 15.0])
def test_all_threads_come_back_when_neighbours_have_left(time):
    """Within the larger of 50 ms and one job; trials are few."""
    jobs = Jobs()
    jobs.run(20, all_threads=0.6 * time, one_thread=time)
    while jobs.threads[-2:] != [1, 1]:  # the trial, and the first after it
        jobs.run(1, all_threads=time + 4, one_thread=time, taken=True)
    jobs.run(int(100 / time), all_threads=time + 4, one_thread=time, taken=True)
    left, begin = jobs.now, len(jobs.threads)
    while jobs.now - left < 2000 * MS:
        jobs.run(1, all_threads=0.6 * time, one_thread=time)
    assert jobs.threads[begin:].count(1) * time <= max(50, time) + time + 0.04 * 2000


def test_of_many_threads_a_slower_one_is_not_tried():
    """A refactorization of 8 ms, by 16 threads, that loses as much to the hypervisor."""
    jobs = Jobs(size=16)
    jobs.run(50, all_threads=8.0, one_thread=70.0)
    assert set(jobs.run(50, all_threads=16.0, one_thread=70.0)) == {"all"}


def in_steps(time, best):
    """Milliseconds of jobs with so many threads: each halving or doubling of the best number costs 30%."""
    return lambda threads: time * (1 + 0.3 * abs(np.log2(threads / best)))


@pytest.mark.parametrize("time", [0.05, 0.5, 5.0])
@pytest.mark.parametrize("best", [1, 2, 4, 8, 16, 24])
def test_the_fastest_number_of_threads_is_found(time, best):
    """Within some tens of jobs; looking for a better one takes little time."""
    jobs = Jobs(size=max(16, best))
    jobs.repeat(60, in_steps(time, best))
    begin, threads = jobs.now, jobs.repeat(2000, in_steps(time, best))
    assert threads.count(best) > 1900
    assert jobs.now - begin <= 1.025 * 2000 * time * MS


def test_a_job_that_scales_keeps_all_threads():
    jobs = Jobs(size=16)
    jobs.repeat(1000, lambda threads: 16 / threads)
    assert jobs.threads.count(16) > 980
    assert jobs.now <= 1.025 * 1000 * MS


def test_equal_numbers_are_left_alone():
    """Numbers of threads that differ by less than what jobs do."""
    jobs, noise = Jobs(size=16), np.random.default_rng(0)
    jobs.repeat(3000, lambda _: 0.5 * noise.uniform(1, 1.03))
    assert jobs.threads.count(16) > 2900


def test_another_number_becomes_the_fastest():
    """Noticed within a second, though no job has become slower."""
    jobs = Jobs(size=16)
    jobs.repeat(20_000, in_steps(0.5, 16))
    begin = jobs.now
    while jobs.threads[-20:] != [4] * 20:
        jobs.next(lambda threads: 0.5 if threads == 16 else in_steps(0.3, 4)(threads))
    assert jobs.now - begin <= 1200 * MS


def test_a_limit_that_rises_is_used():
    jobs = Jobs(size=4)
    jobs.repeat(500, lambda threads: 16 / threads)
    jobs.size = 16
    assert jobs.repeat(10, lambda threads: 16 / threads).count(16) == 10


def test_preemptions_move_nothing():
    """One job in thirty takes 4 ms longer, with any number of threads."""
    jobs, noise = Jobs(size=16), np.random.default_rng(0)
    jobs.repeat(5000, lambda threads: 4 / threads + (4 if noise.random() < 1 / 30 else 0))
    assert jobs.threads.count(16) > 4900


def test_beside_busy_processes_only_one_thread_is_tried():
    """What a few jobs take there tells little of the next ones."""
    jobs = Jobs(size=16)
    jobs.repeat(1000, in_steps(0.5, 4), taken=True)
    assert set(jobs.threads) <= {1, 16}


def test_long_jobs_have_all_threads():
    """Helpers add to what one thread does, whatever neighbours do: see base/loops.hpp."""
    jobs = Jobs()
    jobs.run(20, all_threads=25.0, one_thread=40.0)
    assert set(jobs.run(50, all_threads=80.0, one_thread=40.0)) == {"all"}


@pytest.mark.parametrize("leaders", [1, 4, 9])
def test_iterations_of_loops_are_run_once(leaders, threads):
    threads(5)
    counts = [int(count) for count in np.random.default_rng(0).integers(0, 200, 300)]
    runs, _ = _core_testing.run_loops(size=5, counts=counts, leaders=leaders)
    assert [len(of_loop) for of_loop in runs] == counts * leaders
    assert all(times == 1 for of_loop in runs for times in of_loop)


def test_loops_wait_for_no_helper_that_is_away(threads):
    """One that has no processor, say: here it sleeps between loops, of which 2,000 would take a minute."""
    threads(4)
    runs, seconds = _core_testing.run_loops(size=4, counts=[30] * 2000, away=0.03)
    assert all(times == 1 for of_loop in runs for times in of_loop)
    assert seconds < 20


def test_helpers_leave_a_short_job_after_a_wait_as_long_as_the_job(threads):
    """Then some thread has no processor, and would be awaited in each loop that it helps with."""
    threads(3)
    assert _core_testing.slow_iterations(size=3, loops=40, work=1e-3) <= 4
    assert _core_testing.slow_iterations(size=3, loops=40, work=10.0) > 20


def test_a_quota_counts_as_processors(tmp_path):
    """The least of a control group's and its ancestors'."""
    group = tmp_path / "a" / "b"
    group.mkdir(parents=True)

    def quota(membership="0::/a/b\n"):
        return _core_testing.quota_of(membership, str(tmp_path))

    assert quota() == 0
    (group / "cpu.max").write_text("max 100000\n")
    assert quota() == 0
    (group / "cpu.max").write_text("350000 100000\n")
    assert quota() == quota("1:cpu:/x\n0::/a/b\n") == quota("0::/a/b/c\n") == 4
    assert quota("0::/a\n") == quota("0::/\n") == quota("1:cpu:/a/b\n") == quota("") == 0
    (tmp_path / "a" / "cpu.max").write_text("50000 100000\n")
    assert quota() == quota("0::/a\n") == 1
    (tmp_path / "cpu.max").write_text("250000 100000\n")
    assert quota("0::/\n") == 3


@pytest.fixture
def busy_processes():
    count = 2 * len(os.sched_getaffinity(0))
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    yield
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.parametrize("cholesky", [False, True])
def test_busy_processors_change_no_bits(cholesky, threads, busy_processes):
    A = gallery.named("poisson:17x17x17")
    b = np.random.default_rng(0).standard_normal(A.shape[0])
    factor = (gs.cholesky if cholesky else gs.splu)(A)
    results = []
    for count in (1, 2, 3, 3, 3, 3):
        threads(count)
        fronts = Fronts(A, cholesky)
        info = fronts.factor()
        inverse = factor._core.inverse_on_pattern()
        results.append((info, fronts.lower().data.tobytes(), fronts.solve(b).tobytes(), inverse.tobytes()))
    assert all(found == results[0] for found in results[1:])


def slept():
    """How often each other thread of the process has gone to sleep."""
    others = [task for task in TASKS.iterdir() if int(task.name) != threading.get_native_id()]
    status = {task: (task / "status").read_text() for task in others}
    return {task: int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", text, re.M)[1]) for task, text in status.items()}


def settled():
    """The same once nobody looks for work any more."""
    before, now = {}, slept()
    while now != before:
        time.sleep(0.05)
        before, now = now, slept()
    return now


@pytest.mark.skipif(not TASKS.exists(), reason="Linux tells of threads")
def test_only_as_many_threads_are_woken_as_have_work(threads):
    """Waking one takes microseconds, and a host has dozens."""
    threads(12)
    _core_testing.run_loops(size=12, counts=[12])
    before = settled()
    _core_testing.run_loops(size=3, counts=[3])
    after = settled()
    assert sum(after[task] > count for task, count in before.items()) <= 4  # two, and what else there is


def test_a_thread_keeps_its_rank(threads):
    """Its caches may hold what it worked on in the job before."""
    threads(5)
    jobs = _core_testing.threads_of_ranks(size=5, jobs=20)
    assert all(ranks == jobs[0] and len(set(ranks)) == 5 for ranks in jobs)
    smaller = _core_testing.threads_of_ranks(size=3, jobs=5)
    assert all(ranks == jobs[0][:3] for ranks in smaller)


def multiply():
    """A product that all threads of NumPy's BLAS work at, and look for the next after."""
    M = np.ones((600, 600))
    return M @ M


def processors_of_threads():
    """Of each thread of the process but this one."""
    others = [int(task.name) for task in TASKS.iterdir() if int(task.name) != threading.get_native_id()]
    return {thread: os.sched_getaffinity(thread) for thread in others}


needs_blas = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2 or "openblas" not in Path("/proc/self/maps").read_text(),
    reason="several processors, and NumPy with OpenBLAS",
)


@needs_blas
def test_workers_of_blas_are_kept_to_one_processor_and_let_go():
    multiply()
    settled()
    before = processors_of_threads()
    left, during = _core_testing.beside_blas(processors_of_threads, least=2)
    assert left == len(os.sched_getaffinity(0)) - 1
    aside = {thread for thread, processors in during.items() if processors != before[thread]}
    assert aside and len(set.union(*(during[thread] for thread in aside))) == 1
    assert processors_of_threads() == before


@needs_blas
def test_workers_are_let_alone_while_another_thread_may_wait_for_them():
    multiply()
    settled()
    before, over = processors_of_threads(), threading.Event()

    def multiply_on():
        while not over.is_set():
            multiply()

    thread = threading.Thread(target=multiply_on)
    thread.start()
    try:
        time.sleep(0.05)
        for _ in range(3):
            left, during = _core_testing.beside_blas(processors_of_threads, least=2)
            assert left == 0
            assert all(during[other] == processors for other, processors in before.items())
    finally:
        over.set()
        thread.join()


@needs_blas
def test_workers_are_put_aside_after_products_only():
    _core_testing.beside_blas(multiply, least=2)  # they are known from now on
    time.sleep(0.5)  # and asleep
    assert _core_testing.kind_beside_blas(multiply) == [False, True, False, True]


@needs_blas
def test_a_child_forked_while_workers_are_aside_begins_with_none():
    """They end in the parent too, and come again with the next product: there is nobody left to be let go."""

    def fork():
        child = os.fork()
        if child == 0:
            found = _core_testing.beside_blas(processors_of_threads, least=2)
            lu = gs.splu(gallery.named("poisson:40x40"))
            well = found == (0, {}) and np.isfinite(lu.solve(np.ones(1600))).all()
            os._exit(0 if well else 1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    multiply()
    settled()
    assert _core_testing.beside_blas(fork, least=2)[1] == 0
    multiply()
    settled()
    before = processors_of_threads()
    assert set.union(*before.values()) == os.sched_getaffinity(0)
    assert _core_testing.beside_blas(processors_of_threads, least=2)[0] > 0
