"""Tests of other projects, run in a process of their own under a plugin of tests/conformance."""

import os
import subprocess
from xml.etree import ElementTree

from support.processes import PYTHON, TESTS, environment


def run_suite(tmp_path, plugin, *arguments, **variables):
    """pytest in a process with `plugin`; how many tests there were of each outcome, none of them a failure."""
    report = tmp_path / "report.xml"
    command = [*PYTHON, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path)]
    command += ["-p", "no:cacheprovider", "-p", plugin, f"--junitxml={report}", *arguments]
    variables = environment(TESTS / "conformance", TESTS, **variables)
    run = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    suite = ElementTree.parse(report).getroot().find("testsuite")
    counts = {key: int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped")}
    assert counts["failures"] == counts["errors"] == 0
    return counts
