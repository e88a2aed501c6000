"""Measurements in separate processes, so that a crash ends one case only; results are JSON lines."""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import gpusplu

START = '{"solver"'


def tell(name, found):
    """Print the result of a solver for the parent process."""
    if found is not None:
        print(json.dumps({"solver": name, **found}), flush=True)
    return found or {}


def environment():
    """Environment of a child, which then uses the same packages as this process."""
    places = [str(Path(module.__file__).resolve().parents[1]) for module in (gpusplu, sys.modules[__package__])]
    places += filter(None, [os.environ.get("PYTHONPATH")])
    return os.environ | {"PYTHONPATH": os.pathsep.join(places)}


class Child:
    """A process that measures one case after another: `python -m asv_bench child SUITE ...`.

    Use as a context: the process is ended with it.

    Parameters
    ----------
    suite : str
    options : list of str
    cases : list of str
    """

    def __init__(self, suite, options, cases):
        self.command = [sys.executable, "-P", "-m", __package__, "child", suite, *options, "--cases", *cases]
        self.lines = queue.SimpleQueue()

    def __enter__(self):
        self.errors = tempfile.TemporaryFile("w+")
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": self.errors}
        self.process = subprocess.Popen(self.command, **streams, text=True, env=environment())
        threading.Thread(target=self.forward, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()

    def forward(self):
        """Put the lines of the process, and None at its end, into the queue."""
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def next_case(self, until):
        """Results by solver up to the end of a case, and the reason if the case ended early."""
        found = {}
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, until - time.perf_counter()))
            except queue.Empty:
                return found, "stopped, its time is over"
            if line is None:
                return found, f"ended. {self.complaint()}"
            if line.startswith(START):
                result = json.loads(line)
                solver = result.pop("solver")
                if solver == "done":
                    return found, ""
                found[solver] = result

    def complaint(self):
        """The last line of the standard error of the process."""
        self.process.wait()
        self.errors.seek(0)
        return "".join(self.errors.read().strip().splitlines()[-1:])


def measure_cases(suite, options, limits, seconds, together):
    """Case, results by solver, and the reason if it ended early, of one case after another.

    Parameters
    ----------
    suite : str
    options : list of str
        Of the suite's `child`.
    limits : dict
        Allowed seconds by case.
    seconds : float
        No case begins later.
    together : float
        Additional seconds for the first case of a process that measures all remaining cases; 0: one process per case.
    """
    left, end = list(limits), time.perf_counter() + seconds
    while left and time.perf_counter() < end - 3:
        cases = left if together else left[:1]
        with Child(suite, options, cases) as process:
            extra = together
            for case in list(cases):
                left.remove(case)
                found, ended = process.next_case(min(end, time.perf_counter() + limits[case] + extra))
                extra = 0
                yield case, found, ended
                if ended:
                    break
    for case in left:
        yield case, {}, "not begun, the time is over"
