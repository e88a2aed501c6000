"""What LDL^T on a device has to fulfil, in the emulator as on a GPU; `put` brings arrays to where they are given."""

import numpy as np

import gpusplu as gs

from .small_matrices import phased
from .solves import check_solves

#: Dtypes, and whether a complex matrix is Hermitian or symmetric.
KINDS = [("f", True), ("d", True), *[(dtype, hermitian) for dtype in "FD" for hermitian in (True, False)]]


def check_indefinite(matrix, dtype, hermitian, put=np.asarray, columns=((), (1,), (3,)), held=True):
    """Factor, solve, refactor and count eigenvalues beside the CPU engine; the factor.

    `held`: the device holds it to the end, and answers by itself. In single precision pivots of a large indefinite
    matrix may be in doubt there, and the CPU engine's factor, which delays some, takes its place.
    """
    A = phased(matrix, dtype, hermitian)
    factor = gs.ldlt(A, engine="supernodal", hermitian=hermitian)
    assert factor.engine == "supernodal"
    for scale in (1, -3):
        scaled = A.copy()
        scaled.data *= scale
        if scale != 1:
            factor.refactor(put(scaled.data))
        check_solves(scaled, factor, columns, put)
        assert not (held and factor._core.on_cpu)  # it may have taken columns that the CPU engine delays
        if hermitian:
            check_inertia(factor, gs.ldlt(scaled, engine="cpu"), held)
    return factor


def check_inertia(factor, on_cpu, held=True):
    """That of the CPU engine's factor; told by the device itself if it holds the factor."""
    made = factor._core._cpu
    expected = on_cpu.inertia()
    assert factor.inertia() == expected is not None
    assert not held or factor._core._cpu is made
