"""Systems in lockstep on the processor."""

import numpy as np

from gpusplu import _core
from gpusplu.cost.calibration import for_core
from gpusplu.engines.cpu.engine import CpuBatch


def analysed(A, cholesky=False):
    """Pointers, rows, canonical pattern, and the first analysis for fronts."""
    ptr, ind = A.indptr.astype(np.int64), A.indices.astype(np.int32)
    pattern = _core.canonical("csc", A.shape[0], ptr, ind.astype(np.int64))
    analysis = _core.analyze_candidates(ptr, ind, A.data, for_core(), method="front", cholesky=cholesky)[0]
    return ptr, ind, pattern, analysis.with_scales_of(A.dtype.char)


def lockstep(A, count, cholesky=False, **options):
    """Room for systems with the pattern of `A`."""
    _, _, pattern, analysis = analysed(A, cholesky)
    return CpuBatch(_core.lockstep(analysis, pattern, count, A.data[:0], for_core(), **options))
