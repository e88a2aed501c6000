"""CuPy's own tests of splu, factorized and spsolve under install().

GPUSPLU_CUPYX_TESTS is the path of tests/cupyx_tests/scipy_tests/sparse_tests/test_linalg.py, which is not part of an
installed CuPy, in a checkout of the version that is installed.
"""

import os
from pathlib import Path

import pytest

from support.suites import run_suite


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
