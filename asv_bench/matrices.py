"""Matrices to measure on: real ones and Newton sequences from folders, generated ones by their names in the gallery.

GPUSPLU_MATRICES is the folder of real matrices, by default ../shared/matrices beside the clone; GPUSPLU_SEQUENCES that
of the sequences, by default `sequences` beside it.
"""

import csv
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gpusplu import gallery

MATRICES = Path(os.environ.get("GPUSPLU_MATRICES", Path(__file__).resolve().parents[2] / "shared" / "matrices"))


class Case(NamedTuple):
    """A matrix of the supernodal suite: name, whether definite, group, seconds allowed."""

    name: str
    definite: bool
    group: str
    limit: float = 60.0


CASES = [
    Case("memplus", False, "circuit"),
    Case("case_ACTIVSg10k_nrjac", False, "circuit"),
    Case("ibmpg1t_mna_tran", False, "circuit"),
    Case("ibmpg2t_mna_tran", False, "circuit"),
    Case("ibmpg2t_spd_tran", True, "circuit"),
    Case("anemometer1_A1", False, "middle"),
    Case("faer_matrix_n19168", False, "middle"),
    Case("bcsstk16", True, "middle"),
    Case("bcsstk18", True, "middle"),
    Case("bodyy4", True, "middle"),
    Case("Dubcova1", True, "middle"),
    Case("cotlap_armadillo", True, "middle"),
    Case("rail_20209_negA", True, "middle"),
    Case("elast:20x20x20", True, "middle"),  # 26,460 unknowns
    Case("convdiff:50", False, "large"),
    Case("poisson:1000x1000", True, "large", 90.0),
    Case("poisson:80x80x80", True, "large", 90.0),
    Case("elast:40x40x40", True, "large", 90.0),  # 201,720
    Case("G3_circuit", True, "large", 120.0),
    Case("rlc:700x700", False, "large", 120.0),  # 979,517
    Case("elast:60x59x59", True, "large", 180.0),  # 648,000
]


def select(words):
    """Cases by name or group; all of them for no words or "all". Other gallery names are taken as general matrices."""
    if not words or words == ["all"]:
        return CASES
    chosen = []
    for word in words:
        found = [case for case in CASES if word in (case.name, case.group)]
        if not found and ":" not in word:
            raise SystemExit(f"no case or group {word!r}; groups are {', '.join(sorted({c.group for c in CASES}))}")
        chosen += found or [Case(word, word.startswith(("elast", "poisson")), "other")]
    return chosen


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
