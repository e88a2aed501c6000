"""Python in a process of its own, with the gpusplu of this one, wherever the tests were started."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import gpusplu

PYTHON = [sys.executable, "-P"]
TESTS = Path(__file__).parent.parent


def environment(*folders, **variables):
    """Variables of a process in which modules are looked for in these folders first."""
    paths = [*map(str, folders), str(Path(gpusplu.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **variables}


def run(source, *arguments, timeout=120, **variables):
    """What a program printed, which may import the modules of the tests.

    Raises
    ------
    AssertionError
        It ended with an error or a signal.
    subprocess.TimeoutExpired
        It did not end within `timeout` [s].
    """
    command = [*PYTHON, "-c", textwrap.dedent(source), *map(str, arguments)]
    done = subprocess.run(command, env=environment(TESTS, **variables), capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout
