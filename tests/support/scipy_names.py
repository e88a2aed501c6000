"""Where SciPy has the functions that install() is about, and calls of them."""

import numpy as np
import scipy.sparse as sp

SITES = {
    "scipy.sparse.linalg": ("splu", "spsolve", "factorized"),
    "scipy.sparse.linalg._dsolve": ("splu", "spsolve", "factorized"),
    "scipy.sparse.linalg._dsolve.linsolve": ("splu", "spsolve", "factorized"),
    "scipy.sparse.linalg._eigen.arpack.arpack": ("splu",),
    "scipy.sparse.linalg._matfuncs": ("spsolve",),
    "scipy.integrate._bvp": ("splu",),
    "scipy.integrate._ivp.bdf": ("splu",),
    "scipy.integrate._ivp.radau": ("splu",),
}
A = sp.csc_array(np.array([[4.0, 1, 0], [1, 5, 2], [0, 2, 6]]))
CALLS = {"splu": (A,), "spsolve": (A, np.ones(3)), "factorized": (A,)}
