"""Every allocation of the core fails once, alone and with all that follow: a MemoryError, and nothing is lost."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable

import numpy as np
from scipy.sparse import csc_array

from gpusplu import _core, cholesky, cholesky_batch, gallery, splu, splu_batch
from gpusplu.linalg import analyze, spsolve

from .failing import allocations, failing

ALL = 1 << 40


class mallinfo2(ctypes.Structure):
    """See mallinfo(3)."""

    _fields_ = [(f"field{k}", ctypes.c_size_t) for k in range(10)]


def bytes_in_use() -> int:
    """Of the C library's memory."""
    gc.collect()
    _core.drop_kept_memory()
    function = ctypes.CDLL(None).mallinfo2
    function.restype = mallinfo2
    info = function()
    return int(info.field7 + info.field4)  # uordblks, hblkhd


def sweep(work: Callable[[], object], check: Callable[[], None], most: int = 400) -> tuple[int, int]:
    """Let every allocation of `work` fail, or `most` of them evenly; how many there are and how many raised."""
    work(), check()
    _core.drop_kept_memory()
    count = allocations(work)
    raised = 0
    for first in range(0, count, max(1, -(-count // most))):
        for last in (first, ALL):
            try:
                _core.drop_kept_memory()
                with failing(first, last):
                    work()
            except MemoryError:
                raised += 1
            check()
    return count, raised


def grows(work: Callable[[], object], check: Callable[[], None]) -> int:
    """Memory that a further sweep leaves behind [bytes]."""
    sweep(work, check, 10)
    before = bytes_in_use()
    sweep(work, check, 10)
    return bytes_in_use() - before


def accurate(A, factor) -> None:
    """The factor is of A."""
    for b in (np.ones(A.shape[0], A.dtype), np.ones((A.shape[0], 11), A.dtype, order="F")):
        x = factor.solve(b)
        assert abs(A @ x - b).max() <= 1e-9 * (abs(A).max() * abs(x).max() + 1)


def cases(name: str, dtype: str, **options) -> dict[str, tuple[Callable[[], object], Callable[[], None]]]:
    """What is done to a matrix, and what must hold after it failed."""
    A = gallery.named(name).astype(dtype)
    factorize = cholesky if options.pop("cholesky", False) else splu
    factor = factorize(A, **options)
    b, many, values = np.ones(A.shape[0], A.dtype), np.ones((A.shape[0], 11), A.dtype, order="F"), A.data.copy()

    def holds() -> None:
        accurate(A, factor)

    def fresh() -> None:
        accurate(A, factorize(A, **options))

    def once() -> None:
        x = spsolve(A, b)
        assert abs(A @ x - b).max() <= 1e-9 * (abs(A).max() * abs(x).max() + 1)

    factorize_many = cholesky_batch if factorize is cholesky else splu_batch
    all_values, sides = np.tile(A.data, (3, 1)), np.ones((3, *A.shape[:1]), A.dtype)
    batch = factorize_many(A, all_values)

    def side_by_side() -> None:
        x = batch.solve(sides)
        assert abs(A @ x.T - sides.T).max() <= 1e-9 * (abs(A).max() * abs(x).max() + 1)

    schur = analyze(A, cholesky=factorize is cholesky, schur=np.arange(3)).factor(A.data)
    left = schur.schur.copy()

    def halves() -> None:
        schur.refactor(values)
        schur.expand(np.linalg.solve(left, schur.condense(many)))

    def complement() -> None:
        np.testing.assert_allclose(schur.schur, left, rtol=1e-9, atol=1e-9 * abs(left).max())
        x = schur.expand(np.linalg.solve(left, schur.condense(b)))
        assert abs(A @ x - b).max() <= 1e-9 * (abs(A).max() * abs(x).max() + 1)

    more = changes(A, options) if factorize is cholesky else {}
    return {
        **more,
        "schur": (halves, complement),
        "batch": (lambda: factorize_many(A, all_values).solve(sides), side_by_side),
        "batches": (
            lambda: (batch.refactor_solve(all_values, sides), batch.slogdet(), batch.canonical(1)),
            side_by_side,
        ),
        "once": (once, once),
        "analyze": (lambda: analyze(A, cholesky=factorize is cholesky), fresh),
        "factor": (lambda: factorize(A, **options), fresh),
        "refactor": (lambda: factor.refactor(values), holds),
        "solve": (lambda: (factor.solve(b), factor.solve(many, "T"), factorize(A, **options).solve(many)), holds),
        "parts": (lambda: (factor.symbolic, factor._core.lower(), factor.slogdet(), factor.rcond()), holds),
        "inverse": (lambda: factor._core.inverse_on_factors(), holds),
    }


def changes(A, options) -> dict[str, tuple[Callable[[], object], Callable[[], None]]]:
    """Of a Cholesky factor that is changed, and may be left with what was added."""
    factor, column = cholesky(A, **options), np.zeros((A.shape[0], 9), A.dtype)
    for k in range(9):
        column[[k, A.indices[A.indptr[k]]], k] = 0.1

    def work() -> None:
        factor.update(column)
        factor.downdate(column)

    def check() -> None:
        pattern = factor._pattern
        accurate(csc_array((factor._core.values(), pattern.ind, pattern.ptr), shape=A.shape), factor)

    return {"changes": (work, check)}
