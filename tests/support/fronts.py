"""The multifrontal engine as the tests drive it: analysis step by step, then a FrontFactor of the core."""

import numpy as np
import scipy.sparse as sp

from gpusplu import _core_testing
from support.analyses import supernodal_structure


class Fronts:
    """Analysis and fronts of one matrix; `perm` orders the graph, minimum degree by default."""

    def __init__(self, A, cholesky=False, perm=None, match=True, relax=True):
        self.A = A
        self.cholesky = cholesky
        n = A.shape[0]
        ptr, ind = A.indptr.astype(np.int64), A.indices.astype(np.int32)
        row_of_col, row_scale, col_scale = np.arange(n, dtype=np.int32), np.ones(0), np.ones(0)
        if match and not cholesky:
            _, row_of_col, row_scale, col_scale = _core_testing.max_product_matching(ptr, ind, A.data)
        graph = _core_testing.symmetrize(ptr, ind, row_of_col)
        order = _core_testing.amd(*graph) if perm is None else np.asarray(perm, np.int32)
        self.col_perm, self.symbolic = supernodal_structure(*graph, order, cholesky, relax)
        self.front = _core_testing.front_factor(
            A.dtype.char, self.symbolic, row_of_col[self.col_perm], self.col_perm, row_scale, col_scale, ptr, ind
        )

    def factor(self, values=None, **rule):
        return self.front.factor(self.A.data if values is None else values, **rule)

    def solve(self, b, trans="N"):
        b = np.asarray(b, self.A.dtype)
        return self.front.solve(b.ravel(order="F"), trans).reshape(b.shape, order="F")

    def _csc(self, parts):
        ptr, ind, values = parts
        return sp.csc_array((values, ind, ptr), shape=self.A.shape)

    def lower(self):
        return self._csc(self.front.lower())

    def upper(self):
        return self._csc(self.front.upper())

    def permuted(self):
        return self.A[self.front.row_perm()][:, self.col_perm]


def op(A, trans):
    return {"N": A, "T": A.T, "H": A.conj().T}[trans]
