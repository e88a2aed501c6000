"""Threads that the system refuses to start, or runs late: the work is done by those there are."""

import pytest

from faults.failing import library
from support.processes import run

WORK = """
import hashlib, numpy as np
from faults.failing import functions
from gpusplu import _core, cholesky, gallery, splu
from gpusplu.cost.calibration import for_core

functions().failing_threads({allowed})
def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()
for name, ordering in [("circuit:60x60", "auto"), ("elast:8x8x8", "auto"), ("poisson:90x90", "nd")]:
    A = gallery.named(name)
    b = np.ones((A.shape[0], 3), order="F")
    lu = splu(A, ordering=ordering)
    x = lu.solve(b)
    assert abs(A @ x - b).max() < 1e-8 * abs(A).max() * abs(x).max()
    lu.refactor(2 * A.data)
    print(name, digest(x, lu.solve(b), lu.L.data, lu.perm_c))
A = gallery.named("elast:8x8x8")
print(digest(cholesky(A).L.data))
for symbolic in _core.analyze_candidates(A.indptr.astype(np.int64), A.indices, A.data, for_core(), method="front"):
    print(symbolic.ordering, digest(symbolic.col_perm))
"""


@pytest.fixture(scope="module")
def expected():
    return run(WORK.format(allowed=-1), LD_PRELOAD=library(), GPUSPLU_NUM_THREADS="4")


@pytest.mark.parametrize("allowed", [0, 1, 3, *(pytest.param(k, marks=pytest.mark.thorough) for k in (2, 4))])
def test_results_are_those_of_all_threads(expected, allowed):
    assert run(WORK.format(allowed=allowed), LD_PRELOAD=library(), GPUSPLU_NUM_THREADS="4") == expected


def test_threads_are_asked_for_again():
    run(
        "import os, time\n"
        "from faults.failing import functions\n"
        "from faults.forking import solves\n"
        "def threads():\n"
        "    return len(os.listdir('/proc/self/task'))\n"
        "before = threads()\n"
        "for allowed, more in (1, 1), (-1, 3):\n"
        "    functions().failing_threads(allowed)\n"
        "    end = time.monotonic() + 60\n"
        "    assert solves()\n"
        "    while threads() < before + more and time.monotonic() < end:\n"  # beside busy ones it may take one thread
        "        assert solves()\n"
        "    assert threads() == before + more\n",
        LD_PRELOAD=library(),
        GPUSPLU_NUM_THREADS="4",
        OMP_NUM_THREADS="1",
        OPENBLAS_NUM_THREADS="1",
    )


# A block with six unknowns a vertex and a grid: halves of the same weight have very different numbers of vertices.
LATE = """
import numpy as np, scipy.sparse as sp
import support  # _core_testing lies in the checkout
from faults.failing import functions
from gpusplu import _core_testing, gallery

block, grid = sp.kron(gallery.poisson(10, 10, 10), np.ones((6, 6))), gallery.poisson(100, 90)
n, rng = block.shape[0], np.random.default_rng(0)
link = sp.coo_array((np.ones(5), (rng.integers(0, n, 5), n + rng.integers(0, 9000, 5))), shape=(n + 9000, n + 9000))
A = sp.csc_array(sp.block_diag([block, grid]) + link)
graph = _core_testing.symmetrize(A.indptr.astype(np.int64), A.indices.astype(np.int32))
_core_testing.set_num_threads(1)
expected = _core_testing.nested_dissection(*graph)
_core_testing.set_num_threads(0)  # the default
functions().failing_watch(b"/_core_testing.", -1, -1)
functions().failing_delays(2000)
for _ in range(10):
    assert np.array_equal(_core_testing.nested_dissection(*graph), expected)
"""


@pytest.mark.parametrize("threads", [2, 4])
def test_dissection_does_not_depend_on_who_is_late(threads):
    run(LATE, LD_PRELOAD=library(), GPUSPLU_NUM_THREADS=str(threads))
