"""Records: what was measured, one JSON line a measurement, in files records/SUITE/MACHINE-YEAR-MONTH.jsonl.

Every record has case, engine, phase, ours_s, peer, peer_s, backward_error, commit and date; suites add what else they
know. Earlier records of some suites lack what did not apply.
"""

import datetime
import json
import os
import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
KEYS = ("case", "engine", "phase", "ours_s", "peer", "peer_s", "backward_error", "commit", "date")
MACHINES = {
    "h200": "one NVIDIA H200 and 16 cores of its host, a Xeon",
    "h200x4": "four NVIDIA H200 of one host and 64 cores of it, a Xeon",
    "cpu2": "2 cores of an EPYC server with AVX-512, no GPU",
}


def make(case, engine, phase, ours_s, peer="none", peer_s=None, backward_error=None, **more):
    """A record of this commit and day."""
    values = (case, engine, phase, ours_s, peer, peer_s, backward_error, commit(), datetime.date.today().isoformat())
    return dict(zip(KEYS, values, strict=True)) | more


def commit():
    """GPUSPLU_COMMIT, or what git says; a machine with a device may have no repository."""
    if "GPUSPLU_COMMIT" in os.environ:
        return os.environ["GPUSPLU_COMMIT"]
    asked = subprocess.run(["git", "-C", str(FOLDER), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return asked.stdout.strip() or "unknown"


def append(path, lines):
    """Add records to a file."""
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def read(paths):
    """Every record of these files."""
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def files(suite):
    """Those that are kept of a suite, oldest month first."""
    return sorted((FOLDER / suite).glob("*.jsonl"), key=lambda path: path.stem.split("-", 1)[1])


def by_machine(paths):
    """The files of each machine, by what it is, in the order of `MACHINES`."""
    found = {
        description: [path for path in paths if path.stem.split("-")[0] == name]
        for name, description in MACHINES.items()
    }
    return {description: of for description, of in found.items() if of}


def one_commit(records, commit=None):
    """Those of a commit; unless one is given, of the newest that has all cases of any, or else the most.

    A record without a commit is of the one before it. Newest is what comes last.
    """
    of_commits, last = {}, None
    for record in records:
        last = record.get("commit", last)
        of_commits.setdefault(last, []).append(record)
    if commit:
        return of_commits.get(commit, [])
    cases = {name: len({record["case"] for record in found}) for name, found in of_commits.items()}
    complete = [name for name in of_commits if cases[name] == max(cases.values())]
    return of_commits[complete[-1]] if complete else []
