"""Programs in an interpreter of their own: what they do to themselves, hang or crash does not reach the tests."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(source: str, timeout: float = 120, **environment: str) -> str:
    """What the program printed.

    Raises
    ------
    AssertionError
        It ended with an error or a signal.
    subprocess.TimeoutExpired
        It did not end within `timeout` [s].
    """
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout
