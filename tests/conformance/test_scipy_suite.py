"""SciPy's own test_linsolve.py under install(), and CuPy's tests of splu, factorized and spsolve.

GPUSPLU_CUPYX_TESTS is the path of tests/cupyx_tests/scipy_tests/sparse_tests/test_linalg.py, which is not part of an
installed CuPy, in a checkout of the version that is installed.
"""

import os
from pathlib import Path

import pytest

from support.suites import run_suite

SUITE = ("--pyargs", "scipy.sparse.linalg._dsolve.tests.test_linsolve")


def test_scipys_own_tests_pass_under_install(tmp_path):
    counts = run_suite(tmp_path, "scipy_under_gpusplu", *SUITE)
    assert counts["tests"] - counts["skipped"] >= 345, counts


GPU_ENGINES = pytest.mark.parametrize(
    "engine",
    ["supernodal", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("glu", "sflu", "crisscross"))],
)
THREADS = "TestSplu and test_threads_parallel"  # 20 threads that solve 240 systems each: minutes in the emulator
NO_ENGINE = "TestSpsolveTriangular or is_sptriangular"  # more than half of the tests


@GPU_ENGINES
def test_scipys_own_tests_pass_with_an_engine_of_the_gpu(tmp_path, engine):
    chosen = "-k", f"not ({THREADS} or {NO_ENGINE})"
    counts = run_suite(tmp_path, "scipy_on_emulator", *SUITE, *chosen, GPUSPLU_TESTED_ENGINE=engine)
    assert counts["tests"] - counts["skipped"] >= 38, counts


@pytest.mark.minutes
@GPU_ENGINES
def test_scipys_own_test_of_threads(tmp_path, engine):
    counts = run_suite(tmp_path, "scipy_on_emulator", *SUITE, "-k", THREADS, GPUSPLU_TESTED_ENGINE=engine)
    assert counts["tests"] - counts["skipped"] == 1, counts


@pytest.mark.gpu
@pytest.mark.parametrize("engine", ["auto", "cpu", "supernodal", "glu", "sflu", "crisscross"])
def test_cupys_own_tests_pass_under_install(tmp_path, engine):
    path = Path(os.environ.get("GPUSPLU_CUPYX_TESTS", "test_linalg.py")).resolve()
    if not path.is_file():
        pytest.skip("no tests of CuPy (set GPUSPLU_CUPYX_TESTS)")
    copy = tmp_path / path.name  # away from CuPy's conftest.py and its sources
    copy.write_bytes(path.read_bytes())
    chosen = "(TestSpSolve and not Triangular) or (TestSplu and not spilu)"
    counts = run_suite(tmp_path, "cupyx_under_gpusplu", str(copy), "-k", chosen, GPUSPLU_TESTED_ENGINE=engine)
    assert counts["tests"] - counts["skipped"] >= 40, counts
