"""METIS's nested dissection, through pymetis."""

from importlib.util import find_spec

import numpy as np


def missing():
    return "" if find_spec("pymetis") else "pymetis has to be installed"


def order(ptr, ind):
    import pymetis

    perm, _ = pymetis.nested_dissection(pymetis.CSRAdjacency(ptr.astype(np.int32), ind))
    return np.asarray(perm, np.int32)
