"""Solvers that say when they were asked."""

import warnings

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


def checked(A):
    """Integers are taken too, as by a CuPy that may come."""
    if not sparse.issparse(A):
        raise TypeError("A is not sparse")
    if A.shape[0] != A.shape[1]:
        raise ValueError("A is not square")
    if A.dtype.char not in "fdFDil":
        raise TypeError("A has no dtype for this")
    host = A.get().tocsc()
    return host.astype("d") if host.dtype.kind == "i" else host


def splu(A, permc_spec=None, diag_pivot_thresh=None, relax=None, panel_size=None, options=None):
    """Of the stand-in."""
    asked.append("splu")
    arguments = permc_spec, diag_pivot_thresh, relax, panel_size, options
    return SuperLU(scipy.sparse.linalg.splu(checked(A), *arguments))


def spilu(A):
    return SuperLU(scipy.sparse.linalg.spilu(A.get().tocsc()))


def factorized(A):
    asked.append("factorized")
    return splu(A).solve


def spsolve(A, b):
    asked.append("spsolve")
    host = checked(A)
    if not isinstance(b, cupy.ndarray):
        raise TypeError("b is not on a device")
    if b.shape[0] != A.shape[0]:
        raise ValueError("A and b do not match")
    if A.format != "csr":
        warnings.warn("CSR it should be", sparse.SparseEfficiencyWarning, stacklevel=2)
    return cupy.asarray(scipy.sparse.linalg.spsolve(host, b.get()))
