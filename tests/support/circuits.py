"""Matrices that the column engines are tested on, and what their solves have to fulfil."""

import numpy as np
import scipy.sparse as sp
from small_matrices import EPS, backward_error, canonical, random_matrix, rhs

from gpusplu import gallery


def circuit(dtype):
    A = canonical(gallery.named("circuit:9x9"))
    if np.dtype(dtype).kind == "c":
        A = canonical(A @ sp.diags_array(np.exp(1j * np.arange(A.shape[0]))))
    return A.astype(dtype)


MATRICES = {
    "random": lambda dtype: random_matrix(60, dtype),
    "circuit": circuit,
    "one": lambda dtype: canonical(sp.csc_array([[2.0]])).astype(dtype),
    "diagonal": lambda dtype: canonical(sp.eye_array(5)).astype(dtype),
    "triangular": lambda dtype: canonical(sp.triu(np.ones((5, 5)))).astype(dtype),  # there are no places of updates
}


def check_solves(A, factor, columns=((),)):
    """Backward errors of solves with A, its transpose and its conjugate transpose, for right-hand sides of n rows and
    these columns."""
    for shape in columns:
        b = rhs(A.shape[0], A.dtype, shape)
        for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
            x = factor.solve(b, trans)
            assert backward_error(op, x, b) < 100 * EPS[A.dtype.char], (trans, shape)
