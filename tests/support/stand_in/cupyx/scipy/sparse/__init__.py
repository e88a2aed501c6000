"""Matrices on a device, so to speak."""

import cupy
import numpy as np
import scipy.sparse
from scipy.sparse import SparseEfficiencyWarning as SparseEfficiencyWarning


class spmatrix:
    format = ""
    arrays = "data", "indices", "indptr"

    def __init__(self, host):
        host = getattr(scipy.sparse, f"{self.format}_matrix")(host)
        self.shape = host.shape
        for name in self.arrays:
            setattr(self, name, cupy.asarray(getattr(host, name)))

    dtype = property(lambda self: self.data.dtype)
    nnz = property(lambda self: self.data.size)

    @property
    def host(self):
        """What the device has, for tests to look at."""
        data, *where = (np.array(getattr(self, name)) for name in self.arrays)
        where = [tuple(where)] if self.format == "coo" else where
        return getattr(scipy.sparse, f"{self.format}_matrix")((data, *where), shape=self.shape)

    def __matmul__(self, x):
        return cupy.asarray(self.host @ x.get())

    def get(self):
        return self.host

    def tocsr(self):
        return self if self.format == "csr" else csr_matrix(self.host)


class csr_matrix(spmatrix):
    format = "csr"


class csc_matrix(spmatrix):
    format = "csc"


class coo_matrix(spmatrix):
    format = "coo"
    arrays = "data", "row", "col"


def issparse(x):
    return isinstance(x, spmatrix)
