"""Matrices to measure on: real ones and Newton sequences from folders, generated ones by their names in the gallery.

GPUSPLU_MATRICES is the folder of real matrices, by default ../shared/matrices beside the clone; GPUSPLU_SEQUENCES that
of the sequences, by default `sequences` beside it.
"""

import csv
import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from gpusplu import gallery

MATRICES = Path(os.environ.get("GPUSPLU_MATRICES", Path(__file__).resolve().parents[2] / "shared" / "matrices"))


def load(case):
    """A matrix by its name: of the gallery with a colon, the first of a sequence, or a real one; canonical CSC."""
    return load_sequence(case)[0]


def load_sequence(case):
    """The matrix, and the values of all, shape (steps, nnz), where it is a sequence; else ()."""
    if ":" in case:
        return sp.csc_array(gallery.named(case)), ()
    if case.endswith("_seq"):
        (indptr, indices, data), *_ = [rest[:3] for stem, *rest in sequences() if f"{stem}_seq" == case]
        return sp.csc_array((data[0], indices, indptr), shape=(indptr.size - 1,) * 2), data
    A = sp.csc_array(sp.load_npz(MATRICES / f"{case}.npz"))
    A.sum_duplicates()
    return A, ()


def real(definite, dtype=""):
    """Names of the real matrices that are, or are not, symmetric positive definite, by falling size; of one dtype."""
    with (MATRICES / "INDEX.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows = [row for row in rows if row["spd"].startswith(("yes", "likely")) == definite]
    rows = [row for row in rows if dtype in ("", row["dtype"])]
    return [row["name"] for row in sorted(rows, key=lambda row: -int(row["nnz"]))]


def sequences():
    """Name, pattern (indptr, indices), values (nmat, nnz) and tags of each real Newton sequence."""
    folder = Path(os.environ.get("GPUSPLU_SEQUENCES", MATRICES.parent / "sequences"))
    for path in sorted(folder.glob("*_seq.npz")):
        with np.load(path) as file:
            yield path.stem.removesuffix("_seq"), file["indptr"], file["indices"], file["data"], file["tags"]
