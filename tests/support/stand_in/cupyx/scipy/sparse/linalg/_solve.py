"""Solvers that say when they were asked."""

import cupy
import scipy.sparse.linalg

from cupyx.scipy import sparse

asked = []


class SuperLU:
    def __init__(self, obj):
        if not isinstance(obj, scipy.sparse.linalg.SuperLU):
            raise TypeError("not a factor of SciPy's")
        self.shape, self.nnz, self.host = obj.shape, obj.nnz, obj

    def solve(self, rhs, trans="N"):
        asked.append("solve")
        if not isinstance(rhs, cupy.ndarray):
            raise TypeError("rhs is not on a device")
        if trans not in ("N", "T", "H"):
            raise ValueError("trans is none of three")
        return cupy.asarray(self.host.solve(rhs.get(), trans))


def check(A):
    if not sparse.issparse(A):
        raise TypeError("A is not sparse")
    if A.shape[0] != A.shape[1]:
        raise ValueError("A is not square")
    if A.dtype.char not in "fdFD":
        raise TypeError("A has no dtype for this")


def splu(A, permc_spec=None, diag_pivot_thresh=None, relax=None, panel_size=None, options=None):
    """Of the stand-in."""
    asked.append("splu")
    check(A)
    return SuperLU(scipy.sparse.linalg.splu(A.get().tocsc(), permc_spec, diag_pivot_thresh, relax, panel_size, options))


def spilu(A):
    return SuperLU(scipy.sparse.linalg.spilu(A.get().tocsc()))


def factorized(A):
    asked.append("factorized")
    return splu(A).solve


def spsolve(A, b):
    asked.append("spsolve")
    check(A)
    if not isinstance(b, cupy.ndarray):
        raise TypeError("b is not on a device")
    if b.shape[0] != A.shape[0]:
        raise ValueError("A and b do not match")
    return cupy.asarray(scipy.sparse.linalg.spsolve(A.get(), b.get()))
