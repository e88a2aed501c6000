"""Records: what was measured, one JSON line per measurement.

Those that the documentation shows are in the folder `records`, in files SUITE-MACHINE-YEAR-MONTH.jsonl.xz, one per
suite and machine. `run --out FILE` writes plain JSON lines. To add them: ``xz -9 FILE``, and move the result to the
folder under such a name, or append it to the file that has the name (`cat` joins compressed files).

Every record has case, engine, phase, ours_s, peer, peer_s, backward_error, commit and date; suites add further keys.
Earlier records of some suites lack keys that did not apply.
"""

import datetime
import json
import lzma
import os
import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "records"
KEYS = ("case", "engine", "phase", "ours_s", "peer", "peer_s", "backward_error", "commit", "date")
MACHINES = {
    "h200": "one NVIDIA H200 and 16 cores of its host, a Xeon",
    "h200x4": "four NVIDIA H200 of one host and 64 cores of it, a Xeon",
    "cpu32": "32 cores of a Xeon, the host of two GPUs",
    "cpu16": "16 cores of a Xeon, the host of a GPU",
    "cpu2": "2 cores of an EPYC server with AVX-512, no GPU",
}


def make(case, engine, phase, ours_s, peer="none", peer_s=None, backward_error=None, **more):
    """A record of the current commit and day."""
    values = (case, engine, phase, ours_s, peer, peer_s, backward_error, commit(), datetime.date.today().isoformat())
    return dict(zip(KEYS, values, strict=True)) | more


def commit():
    """GPUSPLU_COMMIT, or the commit that git reports; a machine with a GPU may have no repository."""
    if "GPUSPLU_COMMIT" in os.environ:
        return os.environ["GPUSPLU_COMMIT"]
    command = ["git", "-C", str(FOLDER), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"


def append(path, lines):
    """Append records to a plain file."""
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def read(paths):
    """All records of these files, compressed or plain."""
    found = []
    for path in paths:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rt") as file:
            found += map(json.loads, file)
    return found


def files(suite):
    """The files of a suite in the folder, oldest month first."""
    return sorted(FOLDER.glob(f"{suite}-*.jsonl.xz"), key=lambda path: path.name.split("-", 2)[2])


def machine(path):
    """The name in MACHINES that a file's name contains: SUITE-MACHINE-MONTH or MACHINE-MONTH."""
    return next(word for word in path.name.split("-") if word in MACHINES)


def by_machine(paths):
    """The files of each machine, in the order of MACHINES."""
    found = {name: [path for path in paths if machine(path) == name] for name in MACHINES}
    return {name: of for name, of in found.items() if of}


def one_commit(records, commit=None):
    """The records of `commit`; by default of the newest that has all cases of any, otherwise of the one with most.

    A record without a commit belongs to the commit of the record before it. The newest is the last in the file.
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
