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
