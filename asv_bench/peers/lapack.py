"""Dense fronts by calls of SciPy's LAPACK and BLAS: getrf, 2 trsm and gemm; potrf, trsm and syrk or herk."""

from importlib.util import find_spec

import numpy as np
from scipy.linalg import blas, lapack


def missing():
    return "" if find_spec("threadpoolctl") else "threadpoolctl has to be installed"


def front(cholesky, dtype):
    """A function that overwrites the blocks of a front: A11, A21, U12^T without `cholesky`, and the rest."""
    letter = {"f": "s", "d": "d", "F": "c", "D": "z"}[np.dtype(dtype).char]
    return (cholesky_front if cholesky else lu_front)(letter)


def lu_front(letter):
    getrf, trsm = getattr(lapack, letter + "getrf"), getattr(blas, letter + "trsm")
    gemm = getattr(blas, letter + "gemm")

    def call(a11, a21, ut, c):
        lu, _, _ = getrf(a11, overwrite_a=1)
        if c.size:
            l21 = trsm(1.0, lu, a21, side=1, overwrite_b=1)
            u12 = trsm(1.0, lu, ut, side=1, lower=1, trans_a=1, diag=1, overwrite_b=1)
            gemm(-1.0, l21, u12, beta=1.0, c=c, trans_b=1, overwrite_c=1)

    return call


def cholesky_front(letter):
    potrf, trsm = getattr(lapack, letter + "potrf"), getattr(blas, letter + "trsm")
    rank_k = getattr(blas, letter + ("herk" if letter in "cz" else "syrk"))

    def call(a11, a21, c):
        factor, _ = potrf(a11, lower=1, overwrite_a=1, clean=0)
        if c.size:
            l21 = trsm(1.0, factor, a21, side=1, lower=1, trans_a=2, overwrite_b=1)
            rank_k(-1.0, l21, beta=1.0, c=c, lower=1, overwrite_c=1)

    return call
