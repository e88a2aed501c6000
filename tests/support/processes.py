"""Python in a process of its own, with the gpusplu of this one, wherever the tests were started."""

import os
import sys
from pathlib import Path

import gpusplu

PYTHON = [sys.executable, "-P"]


def environment(*folders, **variables):
    """Variables of a process in which modules are looked for in these folders first."""
    paths = [*map(str, folders), str(Path(gpusplu.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **variables}
