"""What editors and type checkers tell users of gpusplu: tests/api/test_types.py has them read this file.

A line that ends in ``type: ignore`` has to be an error, so that an ignore too many is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never, Protocol, assert_type

import numpy as np
from numpy.typing import NDArray

import gpusplu as gs
import gpusplu.linalg
from gpusplu.typing import Engine, Trans

Floats = NDArray[np.float64]


class Tensor(Protocol):
    """An array of another library: what a type checker knows of it."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> str: ...

    def __dlpack__(self, *, stream: int | None = None) -> object: ...


def factors(A: Any, b: Floats, t: Tensor, trans: Trans, engine: Engine) -> None:
    lu = gs.splu(A, engine=engine, ordering="nd", pivoting="partial", precision="mixed")
    assert_type(lu, gs.LUFactor)
    assert_type(lu.solve(b), NDArray[Any])
    assert_type(lu.solve(b, trans), NDArray[Any])
    assert_type(lu.solve(b, check="later", out=b), NDArray[Any])
    assert_type(lu.solve(t), Tensor)
    assert_type(lu.solve(t, "H", check="later", out=t), Tensor)
    assert_type(lu.refactor_solve(t, t), Tensor)
    assert_type(lu.refactor_solve(b, b, check="later"), NDArray[Any])
    assert_type(lu.shape, tuple[int, int])
    assert_type(lu.perm_r, NDArray[np.int32])
    assert_type(lu.nnz, int)
    assert_type(lu.backward_error, float | None)
    assert_type(lu.check(), float | None)
    assert_type(lu.slogdet().logabsdet, float)
    assert_type(lu.rcond(), float)
    assert_type(lu.explain(), gs.Explanation)
    assert_type(lu.updated(b).solve(t), Tensor)
    assert_type(lu.stats.engine, str)
    assert_type(lu.stats.seconds, dict[str, float])
    assert_type(lu.inverse_diagonal(), NDArray[Any])
    assert_type(lu.symbolic.factor(b.reshape(3)), gs.LUFactor)
    cholesky = gs.cholesky(A, ordering=[2, 0, 1])
    assert_type(cholesky(b), NDArray[Any])
    assert_type(cholesky.logdet(), float)
    assert_type(gs.ldlt(A).inertia(), gs.Inertia | None)
    assert_type(gs.ldlt(A)(t), Tensor)


def single_solves(A: Any, b: Floats, t: Tensor) -> None:
    assert_type(gs.spsolve(A, b), NDArray[Any])
    assert_type(gs.spsolve(A, t), Tensor)
    solve = gs.factorized(A)
    assert_type(solve(b), NDArray[Any])
    plain: Callable[[Floats], Floats] = gs.factorized(A)
    plain(b)


def analyses(A: Any, m: NDArray[np.intp]) -> None:
    one, many = np.ones(7), np.ones((2, 7))
    symbolic = gs.analyze(A, engine="cpu")
    assert_type(symbolic.factor(one), gs.LUFactor)
    assert_type(symbolic.factor(many), gs.BatchedLUFactor)
    assert_type(symbolic.method == "front", bool)
    assert_type(symbolic.flops, float)
    assert_type(gs.analyze(A, cholesky=True).factor(one), gs.CholeskyFactor)
    assert_type(gs.analyze(A, cholesky=True).factor(many, errors="raise"), gs.BatchedCholeskyFactor)
    assert_type(gs.analyze(A, ldlt=True).factor(one), gs.LDLFactor)
    assert_type(gs.analyze(A, ldlt=True), gs.Symbolic[gs.LDLFactor, Never])
    halves = gs.analyze(A, schur=m, cholesky=True).factor(one)
    assert_type(halves, gs.SchurFactor[gs.CholeskyFactor])
    assert_type(halves.interior, gs.CholeskyFactor)
    assert_type(halves.condense(one), NDArray[Any])


def batches(A: Any, values: Floats, t: Tensor) -> None:
    batch = gs.splu_batch(A, values, errors="raise")
    assert_type(batch, gs.BatchedLUFactor)
    assert_type(batch[0], gs.LUFactor)
    assert_type(batch.shape, tuple[int, int, int])
    assert_type(batch.solve(t), Tensor)
    assert_type(batch.refactor_solve(values, values, check="later", out=values), NDArray[Any])
    assert_type(batch.slogdet().logabsdet, NDArray[np.float64])
    assert_type(list(gs.cholesky_batch(A, values)), list[gs.CholeskyFactor])


def unknown_kinds(A: Any, kind: bool, values: Floats) -> None:
    """Nothing is claimed about what arguments do not tell."""
    assert_type(gs.analyze(A, cholesky=kind), Any)
    assert_type(gs.linalg.spilu, Any)
    assert_type(gs.analyze(A).factor(values), Any)


def mistakes(A: Any, b: Floats, t: Tensor) -> None:
    gs.splu(A, engine="gpu")  # type: ignore
    gs.splu(A, permc_spec="AMD")  # type: ignore
    gs.splu(A, ordering="metis")  # type: ignore
    gs.splu(A, pivoting="none")  # type: ignore
    gs.cholesky(A, refine="sometimes")  # type: ignore
    gs.ldlt(A, precision="single")  # type: ignore
    gs.splu_batch(A, b, errors="ignore")  # type: ignore
    gs.splu(A).solve(b, trans="C")  # type: ignore
    gs.splu(A).solve(b, check="never")  # type: ignore
    gs.splu(A).solve(b, out=b)  # type: ignore
    gs.splu(A).solve([1.0, 2.0])  # type: ignore
    gs.splu(A).refactor(b, check="soon")  # type: ignore
    gs.splu(A).selected_inverse("A^T")  # type: ignore
    gs.analyze(A, cholesky=True, ldlt=True, engine="metal")  # type: ignore
    gs.spslove(A, b)  # type: ignore
    gs.splu(A).solv(b)  # type: ignore
    print(gs.analyze(A).flop)  # type: ignore
