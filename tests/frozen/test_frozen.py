"""What must not change is as it was recorded."""

import subprocess

import pytest

from support import ROOT
from support.processes import PYTHON, environment


@pytest.mark.parametrize(
    "part",
    ["errors", "calls", "signatures", *(pytest.param(part, marks=pytest.mark.thorough) for part in ("bits", "device"))],
)
def test_records(part):
    command = [*PYTHON, "-m", "frozen", "--check", part]
    run = subprocess.run(command, env=environment(ROOT / "tests"), capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    if "nothing compared" in run.stdout:
        pytest.skip(run.stdout.strip())
