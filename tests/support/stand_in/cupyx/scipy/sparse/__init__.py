"""Matrices on a device, so to speak."""

import cupy
import scipy.sparse
from scipy.sparse import SparseEfficiencyWarning as SparseEfficiencyWarning


class spmatrix:
    format = ""

    def __init__(self, host):
        self.host = getattr(scipy.sparse, f"{self.format}_matrix")(host)

    dtype = property(lambda self: self.host.dtype)
    shape = property(lambda self: self.host.shape)
    nnz = property(lambda self: self.host.nnz)
    data = property(lambda self: cupy.asarray(self.host.data))

    def __matmul__(self, x):
        return cupy.asarray(self.host @ x.get())

    def get(self):
        return self.host.copy()

    def tocsr(self):
        return self if self.format == "csr" else csr_matrix(self.host)


class csr_matrix(spmatrix):
    format = "csr"


class csc_matrix(spmatrix):
    format = "csc"


class coo_matrix(spmatrix):
    format = "coo"


def issparse(x):
    return isinstance(x, spmatrix)
