"""Allocations that fail and limits on the address space: a MemoryError or the right answer, no crash, no leak."""

import pytest

from faults.failing import library
from support.processes import run

SWEEP = (
    "from faults.sweep import cases, grows, sweep\n"
    "import gpusplu\n"
    "gpusplu.cache_limit(entries={patterns})\n"
    "for work, check in cases({name!r}, {dtype!r}, **{options!r}).values():\n"
    "    count, raised = sweep(work, check, {most})\n"
    "    assert count > 0 and raised > 0, (count, raised)\n"
    "    assert grows(work, check) < {growth}\n"
)


def swept(name, dtype, most, growth, threads, patterns=0, **options):
    source = SWEEP.format(name=name, dtype=dtype, options=options, most=most, growth=growth, patterns=patterns)
    run(source, timeout=300, LD_PRELOAD=library(), GPUSPLU_NUM_THREADS=str(threads))


SOME, ALL = 25, 10**6  # allocations of a call that fail, evenly spread


@pytest.mark.parametrize(
    ("most", "dtype"), [(SOME, "d"), *(pytest.param(ALL, t, marks=pytest.mark.thorough) for t in "dD")]
)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("circuit:6x6", {}),
        ("elast:3x3x3", {}),
        ("poisson:12x12", {"cholesky": True}),
        ("poisson:12x12", {"ordering": "nd"}),
    ],
    ids=["columns", "fronts", "cholesky", "dissection"],
)
def test_every_allocation(name, options, most, dtype):
    swept(name, dtype, most, 20_000, 1, **options)


@pytest.mark.parametrize("most", [SOME, pytest.param(ALL, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    ("name", "options"),
    [("circuit:6x6", {}), ("elast:3x3x3", {}), ("circuit:6x6", {"ordering": "amd"})],
    ids=["columns", "fronts", "options"],
)
def test_every_allocation_of_patterns_that_are_known(name, options, most):
    swept(name, "d", most, 20_000, 1, patterns=64, **options)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "options"),
    [("circuit:60x60", {}), ("elast:6x6x6", {"ordering": "nd"}), ("poisson:60x60", {"ordering": "nd"})],
    ids=["columns", "fronts", "dissection"],
)
def test_some_allocations_of_teams(name, options):
    """Slabs of contribution blocks, 256 KiB, and pages of 2 MiB come and go with the team; one thread leaks nothing."""
    swept(name, "d", 25, 5_000_000, 4, **options)


LIMITED = """
import os, resource
import numpy as np
from faults.forking import solves
from gpusplu import cholesky, gallery, splu

A = gallery.named({name!r})
b = np.ones(A.shape[0])
def size():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
def work():
    lu = splu(A)
    lu.refactor(2 * A.data)
    x, y = lu.solve(b), cholesky(A).solve(b)
    assert abs(A @ y - b).max() < 1e-8 * abs(A).max() * abs(y).max()
    assert abs(2 * x - y).max() < 1e-8 * abs(y).max()
def child(room):
    resource.setrlimit(resource.RLIMIT_AS, (size() + room, resource.RLIM_INFINITY))
    try:
        work()
        return 0
    except MemoryError:
        return 1
counts = [0, 0]
for room in range(0, {most} << 20, {most} << 16):
    pid = os.fork()
    if pid == 0:
        try:
            answer = child(room)
        except BaseException as error:
            os.write(2, repr(error).encode())
            answer = 2
        os._exit(answer)
    _, status = os.waitpid(pid, 0)
    assert os.WIFEXITED(status), (room, status)
    counts[os.WEXITSTATUS(status)] += 1
print(*counts)
"""


def test_rooms_of_all_sizes():
    """Threads of the child are its first, and their stacks count too: where they find no room the work goes on."""
    for name, most in (("elast:8x8x8", 80), ("poisson:90x90", 40)):
        counts = run(LIMITED.format(name=name, most=most), timeout=300, GPUSPLU_NUM_THREADS="4")
        done, refused = map(int, counts.split())
        assert done and refused, (done, refused)
