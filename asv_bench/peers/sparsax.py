"""sparsax: KLU of SuiteSparse for JAX, which remembers analyses and factors by their content; one thread."""

from importlib.util import find_spec

import numpy as np

BATCHES = True


def missing():
    return "" if find_spec("sparsax") else "sparsax has to be installed"


def solver(A):
    """Its solve of a CSR matrix's values and a right-hand side."""
    import sparsax

    rows = np.repeat(np.arange(A.shape[0], dtype=np.int32), np.diff(A.indptr))
    columns = A.indices.astype(np.int32)
    return lambda values, b: sparsax.lu_solve(rows, columns, values, b)
