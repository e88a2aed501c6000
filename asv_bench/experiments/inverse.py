"""Entries of the inverse on A's pattern and its diagonal, compared with a factorization of the same analysis.

The peer is gpusplu itself: `symbolic.factor` of the same values, by cholesky, ldlt or splu, depending on the matrix.
`error` is the largest difference between entries of the diagonal and solves with unit vectors, relative to the largest
of these entries.
"""

import numpy as np

import gpusplu as gs

from .. import records
from ..matrices import load
from ..options import measured
from ..timing import HostClock

CASES = (
    *("poisson:300x300", "poisson:30x30x30", "elast:12x12x12", "elast:20x20x20", "bcsstk16", "ibmpg2t_spd_tran"),
    *("kkt:20000x8000x3", "stokes:60x60", "helmholtz:150x150"),
    *("convdiff:30", "rlc:150x150", "memplus", "case_ACTIVSg10k_nrjac", "ibmpg1t_mna_tran", "faer_matrix_n19168"),
)
PEERS, BUDGET = (), 0.5
DEFINITE = ("poisson", "elast", "bcsstk", "ibmpg2t_spd")
SYMMETRIC = ("kkt", "stokes", "helmholtz")
UNITS = 5  # columns of the inverse that are solved for, where A has a diagonal entry


def add_arguments(parser):
    pass


def compare(case, budget):
    """Records of both calls."""
    A, clock = load(case), HostClock(budget)
    A.sort_indices()
    kind = {"cholesky": case.startswith(DEFINITE), "ldlt": case.startswith(SYMMETRIC)}
    symbolic = gs.analyze(A, engine="cpu", **kind)
    factor = symbolic.factor(A.data)
    beside = clock.least(lambda: symbolic.factor(A.data))
    stored = np.flatnonzero(A.diagonal())
    units = stored[np.linspace(0, stored.size - 1, UNITS).astype(int)]
    solved = factor.solve(unit_vectors(A.shape[0], units))[units, np.arange(UNITS)]
    found = {"selected_inverse": factor.selected_inverse().diagonal(), "inverse_diagonal": factor.inverse_diagonal()}
    for phase, diagonal in found.items():
        error = float(np.abs(diagonal[units] - solved).max() / np.abs(solved).max())
        seconds = clock.least(getattr(factor, phase))
        yield records.make(case, "cpu", phase, seconds, "factor", beside, error, n=A.shape[0], nnz=A.nnz)


def unit_vectors(n, units):
    vectors = np.zeros((n, len(units)), order="F")
    vectors[units, np.arange(len(units))] = 1
    return vectors


def run(arguments):
    yield from measured(arguments, arguments.cases, lambda case: compare(case, arguments.budget))
