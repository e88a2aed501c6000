"""Cases by the thousand in subprocesses, so that a crash of the interpreter is seen and its case is known."""

from __future__ import annotations

import collections
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MEMORY = 2 << 30  # of a subprocess [bytes]: what a case asks for beyond is a MemoryError
SECONDS = 600


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def run_batch(module: str, seed: int, count: int) -> tuple[collections.Counter[str], str]:
    """Run `count` cases of tests.faults.`module` from `seed` on.

    Returns
    -------
    outcomes : Counter
    failure : str
        The case that crashed, hung or gave a wrong answer, and what it said; empty if none did.
    """
    command = [sys.executable, "-m", f"tests.faults.{module}", str(seed), str(count)]
    try:
        run = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            preexec_fn=limit_memory,
        )
        code, said, output = run.returncode, run.stderr, run.stdout
    except subprocess.TimeoutExpired as late:
        code, said, output = "too late", "", (late.stdout or b"").decode(errors="replace")
    lines = output.split()
    if code == 0 and len(lines) == 2 * count:
        return collections.Counter(lines[1::2]), ""
    last = lines[-1 if len(lines) % 2 else -2] if lines else "none"
    return collections.Counter(lines[1::2]), f"{module}: seed {last} ended with {code}: {said[-2000:]}"
