"""Memory that freed arrays have left is there for the next factorization, and is given back."""

import sys

import pytest

from support.processes import run

FAULTS = """
import resource
import gpusplu as gs
from gpusplu import _core

A = gs.gallery.named("{case}")
gs.cache_limit(entries=0)

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def met(before):
    least = 1 << 40
    for _ in range(5):
        before()
        start = faults()
        gs.{function}(A, engine="cpu")
        least = min(least, faults() - start)
    return least

met(lambda: None)
print(met(lambda: None), met(_core.drop_kept_memory))
"""

BYTES = """
import gc
import os
import gpusplu as gs
from gpusplu import _core

_core.set_num_threads(8)  # with room for as many in one address space
gs.cache_limit(entries=0)

def resident():
    # bytes, and those of them that the system may take
    with open("/proc/self/smaps_rollup") as file:
        sizes = dict(line.split()[:2] for line in file if "kB" in line)
    return int(sizes["Rss:"]) << 10, int(sizes["LazyFree:"]) << 10

for case in ("poisson:300x300", "poisson:20x20x20", "poisson:300x300"):
    gs.cholesky(gs.gallery.named(case), engine="cpu")
gc.collect()
before, offered = resident()
_core.drop_kept_memory()
after, left = resident()
print(before - offered - (after - left), offered, left)
"""


# What the C library keeps by itself depends on what was freed before, unless it is set: here almost nothing.
NOTHING = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def numbers(program):
    return tuple(map(int, run(program, **NOTHING).split()))


@pytest.mark.skipif(sys.platform != "linux", reason="counts page faults as Linux does")
@pytest.mark.parametrize(
    ("function", "case"),
    [("splu", "rlc:60x60"), ("cholesky", "poisson:150x150"), ("cholesky", "poisson:20x20x20")],
)
def test_a_second_factorization_meets_few_fresh_pages(function, case):
    kept, dropped = numbers(FAULTS.format(function=function, case=case))
    assert dropped > 50
    assert kept < dropped / 2


@pytest.mark.skipif(sys.platform != "linux", reason="reads what is resident as Linux says it")
def test_what_is_kept_is_bounded():
    kept, offered, left = numbers(BYTES)
    assert 0 < kept < 17 << 20
    assert 20 << 20 < offered <= 512 << 20  # panels of poisson:300x300 have 27 MB
    assert left == 0
