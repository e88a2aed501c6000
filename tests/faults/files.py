"""Matrix files with flipped bits, lost bytes and other numbers: the command line reads a matrix or says why not.

``python -m tests.faults.files SEED COUNT`` runs some cases in this process, and says which one before each of them.
"""

from __future__ import annotations

import gzip
import io
import random
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.cli.files import read_matrix
from gpusplu.cli.report import CommandError

from .pickles import mutate

NUMBERS = (b"2147483648", b"-1", b"0", b"99999999999999999999", b"nan", b"1e999", b"3000000000", b"1.5", b"\0", b"")


@cache
def originals() -> list[tuple[str, bytes]]:
    """Name and contents of a small matrix in every format."""
    A = sp.random_array((12, 12), density=0.2, rng=np.random.default_rng(5), format="csc") + 3 * sp.eye_array(12)
    made = []
    for values in (A, (10 * A).astype(np.int64), A * (1 + 1j)):
        file = io.BytesIO()
        scipy.io.mmwrite(file, sp.coo_array(values))
        made.append(("a.mtx", file.getvalue()))
    made.append(("a.mtx.gz", gzip.compress(made[0][1])))
    for format in ("csc", "csr", "coo", "bsr", "dia"):
        file = io.BytesIO()
        sp.save_npz(file, sp.csc_array(A).asformat(format), compressed=False)
        made.append(("a.npz", file.getvalue()))
    return made


def mutated(name: str, text: bytes, generator: random.Random) -> bytes:
    """By bits, or a number of a text by another."""
    if name == "a.mtx" and generator.random() < 0.5:
        words = text.split(b" ")
        words[generator.randrange(len(words))] = generator.choice(NUMBERS)
        return b" ".join(words)
    return mutate(text, generator)


def run(seed: int) -> str:
    """One case: what came of it."""
    generator = random.Random(seed)
    name, text = generator.choice(originals())
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (Path(folder) / name).write_bytes(mutated(name, text, generator))
        try:
            A = read_matrix(Path(folder) / name)
        except CommandError as error:
            return "CommandError" if len(str(error).splitlines()) == 1 else "several lines"
    try:
        x = gs.splu(A).solve(np.ones(A.shape[0], np.result_type(A.dtype, np.float64)))
    except (RuntimeError, MemoryError) as error:  # singular
        return type(error).__name__
    with np.errstate(all="ignore"):
        residual = abs(1 - A @ x).max() / (abs(A).sum(axis=1).max() * abs(x).max() + 1)
    assert residual <= 1e-12 or not np.isfinite(x).all(), residual
    return "works"


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:])
    for number in range(first, first + count):
        print(number, flush=True)
        print(run(number), flush=True)
