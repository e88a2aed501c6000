"""What LDL^T on a device has to fulfil, in the emulator as on a GPU; `put` brings arrays to where they are given."""

import numpy as np

import gpusplu as gs

from .small_matrices import phased
from .solves import check_solves

#: Dtypes, and whether a complex matrix is Hermitian or symmetric.
KINDS = [("f", True), ("d", True), *[(dtype, hermitian) for dtype in "FD" for hermitian in (True, False)]]


def check_indefinite(matrix, dtype, hermitian, put=np.asarray, columns=((), (1,), (3,)), exact=None):
    """Factor, solve, refactor and count eigenvalues beside the CPU engine; the factor, which the device holds."""
    A = phased(matrix, dtype, hermitian)
    factor = gs.ldlt(A, engine="supernodal", hermitian=hermitian)
    assert factor.engine == "supernodal"
    for scale in (1, -3):
        scaled = A.copy()
        scaled.data *= scale
        if scale != 1:
            factor.refactor(put(scaled.data))
        check_solves(scaled, factor, columns, put)
        assert not factor._core._on_cpu  # it may have taken columns that the CPU engine delays
        if hermitian:
            check_inertia(factor, gs.ldlt(scaled, engine="cpu"))
    return factor


def check_inertia(factor, on_cpu):
    """Told by the device itself."""
    made = factor._core._cpu
    expected = on_cpu.inertia()
    assert factor.inertia() == expected is not None
    assert factor._core._cpu is made
