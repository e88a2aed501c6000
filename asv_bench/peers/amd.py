"""SuiteSparse's approximate minimum degree: AMD is the path of its library, libamd.so.2 unless set."""

import ctypes
import os

import numpy as np


def library():
    return ctypes.CDLL(os.environ.get("AMD", "libamd.so.2"))


def missing():
    try:
        library()
    except OSError:
        return "AMD has to name libamd.so.2"
    return ""


def order(ptr, ind):
    found = np.empty(len(ptr) - 1, np.int32)
    arrays = (ptr.astype(np.int32), ind, found)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    status = library().amd_order(ctypes.c_int(found.size), *pointers, None, None)
    if status < 0:
        raise RuntimeError(f"amd_order returned {status}")
    return found
