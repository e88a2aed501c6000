"""Peak memory of a first factorization: as predicted from the analysis, and at most half more than the factor."""

import pickle
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import _core
from support.processes import run

MEASURE = """
import ctypes
import numpy as np
import scipy.sparse as sp
import gpusplu as gs
from gpusplu import _core

def resident(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(name))

kind = dict(cholesky="{kind}" == "cholesky", ldlt="{kind}" == "ldlt")

def factor(A):
    symbolic = gs.analyze(A, engine="cpu", **kind)
    return symbolic, symbolic.factor(A)

_core.set_num_threads({threads})
factor(gs.gallery.poisson(5, 5).tocsc().astype("{dtype}"))  # imports
A = sp.csc_array({matrix}).astype("{dtype}")
_core.drop_kept_memory()
ctypes.CDLL(None).malloc_trim(0)  # what making the matrix has left
before = resident("VmRSS:")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # VmHWM := VmRSS
symbolic, made = factor(A)
peak = resident("VmHWM:") - before
print(peak, gs.explain(A, engine="cpu", **kind).memory.host_peak, made.stats.bytes)
"""

LINE = "sp.diags_array([np.full(399999, -1.0), np.full(400000, 4.0), np.full(399999, -2.0)], offsets=[-1, 0, 1])"


def mesh(name):
    return f"gs.gallery.named('{name}')"


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads resident memory from /proc")
@pytest.mark.parametrize(
    ("matrix", "kind", "dtype", "threads"),
    [
        (mesh("poisson:40x40x40"), "cholesky", "float64", 1),
        (mesh("poisson:40x40x40"), "cholesky", "float64", 2),
        (mesh("poisson:40x40x40"), "cholesky", "float64", 16),
        (mesh("elast:20x20x20"), "cholesky", "float64", 16),
        (mesh("elast:20x20x20"), "cholesky", "float32", 1),
        (mesh("convdiff:30"), "lu", "float64", 1),
        (mesh("convdiff:30"), "lu", "float64", 2),
        (mesh("convdiff:25"), "lu", "complex128", 16),
        (mesh("poisson:500x500"), "cholesky", "float64", 16),
        (mesh("poisson:30x30x30"), "ldlt", "float64", 1),
        (LINE, "lu", "float64", 1),  # by columns
    ],
)
def test_the_peak_is_predicted_and_is_at_most_half_more_than_the_factor(matrix, kind, dtype, threads):
    measured, predicted, factor = map(int, run(MEASURE.format(**locals())).split())
    assert predicted == pytest.approx(measured, rel=0.1)
    others = LINE, mesh("poisson:500x500")  # up to 1.8 and, with 16 threads, 1.6
    assert matrix in others or measured < 1.5 * factor


@pytest.mark.slow
def test_results_do_not_depend_on_the_order_of_tasks_that_the_limit_of_memory_allows():
    A = gs.gallery.named("convdiff:25").astype(complex)  # a factor of 62 MB
    before, solutions = _core.num_threads(), []
    try:
        for threads in (1, 3, 16):
            _core.set_num_threads(threads)
            lu = gs.splu(A, engine="cpu")
            lu.refactor(A)
            solutions.append(lu.solve(np.ones(A.shape[0])))
    finally:
        _core.set_num_threads(before)
    assert all(np.array_equal(x, solutions[0]) for x in solutions)


SHORT = """
import resource
import gpusplu as gs

A = gs.gallery.poisson(40, 40, 40)
gs.analyze(A, engine="cpu", cholesky=True)
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 150_000_000, resource.RLIM_INFINITY))
try:
    gs.cholesky(A, engine="cpu")
except gs.HostMemoryError as error:
    print(error.needed, error.free, gs.explain(A, engine="cpu", cholesky=True).memory.host_free, error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads free memory from /proc")
def test_a_factorization_that_does_not_fit_raises_before_it_allocates():
    needed, free, explained, text = run(SHORT).split(maxsplit=3)
    assert int(free) < 170_000_000 < int(needed) < 220_000_000
    assert int(explained) < 170_000_000
    assert f"needs about {int(needed):,} bytes of memory and {int(free):,} bytes are free on this host" in text


def test_explain_says_how_much_memory_a_factorization_needs():
    explained = gs.explain(gs.gallery.poisson(100, 100), engine="cpu")
    memory = explained.memory
    assert memory.host_peak > gs.splu(gs.gallery.poisson(100, 100), engine="cpu").stats.bytes
    assert memory.device_peak is None and memory.device_free is None
    assert "memory    peak " in explained and " free on this host" in explained
    assert pickle.loads(pickle.dumps(explained)).memory == memory
    assert gs.explain(sp.csc_array((3, 3))).memory is None
