"""Teams of threads whose processors others keep busy."""

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


@pytest.fixture
def threads():
    before = _core_testing.num_threads()
    yield _core_testing.set_num_threads
    _core_testing.set_num_threads(before)


def test_a_job_is_crowded_whose_members_hardly_worked():
    assert _core_testing.job_is_crowded(3e-3, worked=1e-3, impatient=True)
    assert not _core_testing.job_is_crowded(3e-3, worked=1e3, impatient=True)
    assert not _core_testing.job_is_crowded(3e-3, worked=1e-3, impatient=False)  # nobody waited long
    assert not _core_testing.job_is_crowded(0.0, worked=0.0, impatient=True)  # too early to tell


def test_members_agree_on_when_a_team_is_crowded(threads):
    """A member that sleeps while all wait for it is one that has no processor."""
    threads(3)
    rounds = _core_testing.crowded_rounds(size=3, rounds=6, seconds=3e-3)
    assert len(rounds) == 3 and rounds[0] == rounds[1] == rounds[2]
    assert not rounds[0][0] and rounds[0][-1]
    assert rounds[0] == sorted(rounds[0])


def test_after_a_crowded_job_one_thread_works_for_a_while():
    assert _core_testing.members_after(5e-3) == [4, 1, 4]


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
    _core_testing.crowded_rounds(size=12, rounds=1, seconds=0.0)
    before = settled()
    _core_testing.crowded_rounds(size=3, rounds=1, seconds=0.0)
    after = settled()
    assert sum(after[task] > count for task, count in before.items()) <= 4  # two, and what else there is


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
def test_processors_that_a_worker_was_given_are_restored():
    multiply()
    settled()
    _, during = _core_testing.beside_blas(processors_of_threads, least=2)
    before = processors_of_threads()
    worker = next(thread for thread, processors in during.items() if processors != before[thread])
    given = {max(before[worker])} - during[worker] or {min(before[worker])}
    os.sched_setaffinity(worker, given)
    try:
        _core_testing.beside_blas(processors_of_threads, least=2)
        assert os.sched_getaffinity(worker) == given
    finally:
        os.sched_setaffinity(worker, before[worker])


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
def test_workers_are_let_alone_where_one_thread_does_as_much():
    multiply()
    before = processors_of_threads()
    left, during = _core_testing.beside_blas(processors_of_threads, least=len(os.sched_getaffinity(0)) + 1)
    assert left == 0 and during == before


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
