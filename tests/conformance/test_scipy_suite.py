"""SciPy's own test_linsolve.py under install()."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import gpusplu


def test_scipys_own_tests_pass_under_install(tmp_path):
    report = tmp_path / "report.xml"
    root = Path(gpusplu.__file__).parents[1]
    paths = [str(Path(__file__).parent), str(root), os.environ.get("PYTHONPATH", "")]
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path)]
    command += ["-p", "no:cacheprovider", "-p", "scipy_under_gpusplu", f"--junitxml={report}"]
    command += ["--pyargs", "scipy.sparse.linalg._dsolve.tests.test_linsolve"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    suite = ElementTree.parse(report).getroot().find("testsuite")
    counts = {key: int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped")}
    assert counts["failures"] == counts["errors"] == 0
    assert counts["tests"] - counts["skipped"] >= 345, counts
