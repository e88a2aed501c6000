"""Allocations of the core that fail: always a MemoryError, never a crash, a leak, or a wrong answer afterwards."""

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
