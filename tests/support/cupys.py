"""CuPy with a device, and its functions that install() is about, of the stand-in (support/stand_in)."""

import importlib
import warnings

import numpy as np
import pytest

from support.small_matrices import random_matrix

MODULE = "cupyx.scipy.sparse.linalg"
NAMES = ("splu", "spsolve", "factorized")
# What calls() returns where CuPy answers: factorized calls splu.
THEIRS = ["splu", "spsolve", "factorized", "splu"]


def real_cupy():
    """CuPy, or a skip that says what is missing."""
    with warnings.catch_warnings():  # CuPy's own, about the machine it is on
        warnings.simplefilter("ignore")
        module = pytest.importorskip("cupy")
    try:
        count = module.cuda.runtime.getDeviceCount()
    except module.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"no CUDA device: {error}")
    return module if count else pytest.skip("no CUDA device")


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
