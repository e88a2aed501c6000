"""CuPy's functions that install() is about, of the stand-in (support/stand_in), and calls of them."""

import importlib

import numpy as np

from support.small_matrices import random_matrix

MODULE = "cupyx.scipy.sparse.linalg"
NAMES = ("splu", "spsolve", "factorized")
# What calls() returns where CuPy answers: factorized calls splu.
THEIRS = ["splu", "spsolve", "factorized", "splu"]


class Cupyx:
    """The stand-in, imported: its functions, and what of them was asked."""

    def __init__(self):
        self.linalg = importlib.import_module(MODULE)
        self.sparse = importlib.import_module("cupyx.scipy.sparse")
        self.cupy = importlib.import_module("cupy")
        self.asked = importlib.import_module(f"{MODULE}._solve").asked

    def matrix(self, A=None, kind="csr"):
        A = random_matrix(12) if A is None else A
        return getattr(self.sparse, f"{kind}_matrix")(A)

    def calls(self):
        """Each function called once; the names of those that were not ours."""
        A, b = self.matrix(), self.cupy.asarray(np.ones(12))
        self.asked.clear()
        np.testing.assert_allclose(A.host @ self.linalg.splu(A).solve(b).get(), np.ones(12))
        np.testing.assert_allclose(A.host @ self.linalg.spsolve(A, b).get(), np.ones(12))
        np.testing.assert_allclose(A.host @ self.linalg.factorized(A)(b).get(), np.ones(12))
        return [name for name in self.asked if name != "solve"]
