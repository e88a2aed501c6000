"""Memory that freed arrays have left is there for the next factorization, and is given back."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import gpusplu as gs
from gpusplu import _core

A = gs.gallery.named("rlc:60x60")
gs.cache_limit(entries=0)

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def met(before):
    least = 1 << 40
    for _ in range(5):
        before()
        start = faults()
        gs.splu(A, engine="cpu")
        least = min(least, faults() - start)
    return least

met(lambda: None)
print(met(lambda: None), met(_core.drop_kept_memory))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts page faults as Linux does")
def test_a_second_factorization_meets_few_fresh_pages():
    # the C library gives back what it would otherwise keep or not by what was freed before
    own = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    program = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(program, capture_output=True, text=True, check=True, env=os.environ | own)
    kept, dropped = map(int, done.stdout.split())
    assert dropped > 50
    assert kept < dropped / 2
