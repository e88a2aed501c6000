"""SciPy's own test_linsolve.py under install()."""

import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.processes import PYTHON, environment

SUITE = "scipy.sparse.linalg._dsolve.tests.test_linsolve"
HERE = Path(__file__).parent


def run_suite(tmp_path, plugin, *arguments, **variables):
    """SciPy's tests in a process with `plugin`; how many there were of each outcome."""
    report = tmp_path / "report.xml"
    command = [*PYTHON, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path)]
    command += ["-p", "no:cacheprovider", "-p", plugin, f"--junitxml={report}", "--pyargs", SUITE, *arguments]
    variables = environment(HERE, HERE.parent, **variables)
    run = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    suite = ElementTree.parse(report).getroot().find("testsuite")
    counts = {key: int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped")}
    assert counts["failures"] == counts["errors"] == 0
    return counts


def test_scipys_own_tests_pass_under_install(tmp_path):
    counts = run_suite(tmp_path, "scipy_under_gpusplu")
    assert counts["tests"] - counts["skipped"] >= 345, counts


GPU_ENGINES = pytest.mark.parametrize("engine", ["supernodal", "glu", "sflu", "crisscross"])
THREADS = "TestSplu and test_threads_parallel"  # 20 threads that solve 240 systems each: minutes in the emulator


@GPU_ENGINES
def test_scipys_own_tests_pass_with_an_engine_of_the_gpu(tmp_path, engine):
    counts = run_suite(tmp_path, "scipy_on_emulator", "-k", f"not ({THREADS})", GPUSPLU_TESTED_ENGINE=engine)
    assert counts["tests"] - counts["skipped"] >= 344, counts


@pytest.mark.minutes
@GPU_ENGINES
def test_scipys_own_test_of_threads(tmp_path, engine):
    counts = run_suite(tmp_path, "scipy_on_emulator", "-k", THREADS, GPUSPLU_TESTED_ENGINE=engine)
    assert counts["tests"] - counts["skipped"] == 1, counts
