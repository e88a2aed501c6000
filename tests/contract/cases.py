"""Engines, kinds of factorizations and number types, and what is the same for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from support.small_matrices import EPS, canonical, phased, random_matrix, rhs, spd_matrix

MAKE: dict[str, Callable[..., Any]] = {"lu": gs.splu, "cholesky": gs.cholesky, "ldlt": gs.ldlt}
BATCH: dict[str, Callable[..., Any]] = {"lu": gs.splu_batch, "cholesky": gs.cholesky_batch}
#: Factorizations that end with these values, and the errors that say so.
INCOMPATIBLE = {"lu": RuntimeError, "cholesky": gs.NotPositiveDefiniteError, "ldlt": RuntimeError}


@dataclass(frozen=True)
class Engine:
    """What an engine has."""

    name: str
    kinds: tuple[str, ...] = ("lu",)
    on_device: bool = True
    #: Kinds of which it factors many systems side by side on the device, with calls that are not waited for.
    lockstep: tuple[str, ...] = ()
    #: Kinds whose complement its fronts leave on the device.
    schur: tuple[str, ...] = ()
    #: Its first factorization seeks pivots by columns if the caller wants that.
    partial_pivoting: bool = True
    repeatable: bool = True


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("cpu", ("lu", "cholesky", "ldlt"), on_device=False),
        Engine(
            "supernodal",
            ("lu", "cholesky", "ldlt"),
            lockstep=("lu", "cholesky"),
            schur=("lu", "cholesky", "ldlt"),
            partial_pivoting=False,
        ),
        Engine("glu", repeatable=False),
        Engine("sflu"),
        Engine("crisscross"),
        Engine("toy", on_device=False),  # support/toy_engine.py, registered by the fixture `case`
    )
}


@dataclass
class Case:
    """An engine with a kind of factorization in a number type, and where CuPy is."""

    engine: Engine
    kind: str
    dtype: str
    cupy: Any = field(default=None, repr=False)

    @property
    def eps(self) -> float:
        return EPS[self.dtype]

    def make(self, A: Any = None, **options: Any) -> Any:
        return MAKE[self.kind](self.A if A is None else A, engine=self.engine.name, **options)

    def analyze(self, A: Any = None, **options: Any) -> Any:
        kind = {} if self.kind == "lu" else {self.kind: True}
        return gs.analyze(self.A if A is None else A, engine=self.engine.name, **kind, **options)

    def batch(self, A: Any, values: Any, **options: Any) -> Any:
        return BATCH[self.kind](A, values, engine=self.engine.name, **options)

    @cached_property
    def A(self) -> sp.csc_array:
        return matrix(self.kind, self.dtype)

    @property
    def n(self) -> int:
        return int(self.A.shape[0])

    def b(self, *columns: int, seed: int = 5) -> np.ndarray:
        return rhs(self.n, self.dtype, columns, seed)

    @property
    def places(self) -> tuple[Callable[[np.ndarray], Any], ...]:
        """Host and device."""
        return np.asarray, self.cupy.asarray

    @property
    def puts(self) -> Callable[[np.ndarray], Any]:
        """To where the engine works."""
        return self.cupy.asarray if self.engine.on_device else np.asarray

    def doubled(self) -> sp.csc_array:
        return with_values(self.A, 2 * self.A.data)

    def unfit(self) -> np.ndarray:
        """Values that have no factor."""
        if self.kind == "cholesky":
            return -self.A.data
        values = self.A.data.copy()
        values[touching(self.A, 4, self.kind != "lu")] = 0
        return values

    def spoilt(self, place: int = 5, value: float = np.nan) -> np.ndarray:
        """Values one of which is not finite."""
        values = self.A.data.copy()
        values[place] = value
        return values

    def accurate(self, factor: Any, A: sp.csc_array | None = None, put: Callable[..., Any] = np.asarray) -> None:
        """The factor solves with A."""
        A = self.A if A is None else A
        b = rhs(A.shape[0], self.dtype)
        assert backward_error(A, factor.solve(put(b)), b) < 100 * self.eps


def matrix(kind: str, dtype: str) -> sp.csc_array:
    """Unsymmetric; Hermitian definite; Hermitian with eigenvalues of both signs."""
    if kind == "lu":
        return random_matrix(40, dtype)
    if kind == "cholesky":
        return spd_matrix(36, dtype)
    return phased(gs.gallery.stokes(4, 4), dtype, hermitian=True)


def with_values(A: sp.csc_array, values: np.ndarray) -> sp.csc_array:
    return sp.csc_array((values, A.indices, A.indptr), shape=A.shape)


def touching(A: sp.csc_array, column: int, rows: bool) -> np.ndarray:
    """Entries of a column, and of the row of that number."""
    columns = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    return (columns == column) | (rows & (A.indices == column))


def on_host(x: Any) -> np.ndarray:
    return x if type(x) is np.ndarray else x.get()


def operators(A: sp.csc_array) -> tuple[tuple[str, sp.csc_array], ...]:
    return ("N", A), ("T", canonical(A.T)), ("H", canonical(A.conj().T))


def backward_error(A: Any, x: Any, b: Any) -> float:
    """Largest residual over the largest of what its terms are bounded by (Rigal and Gaches, 1967), of all columns."""
    x, b = (on_host(v).astype("D" if on_host(v).dtype.kind == "c" else "d") for v in (x, b))
    x, b = (v.reshape(A.shape[0], -1) for v in (x, b))
    A = A.astype("D" if A.dtype.kind == "c" else "d")
    residual = abs(b - A @ x).max(axis=0, initial=0)
    terms = abs(A).sum(axis=1).max(initial=0) * abs(x).max(axis=0, initial=0) + abs(b).max(axis=0, initial=0)
    assert np.isfinite(x).all()
    return float((residual / np.maximum(terms, np.finfo(float).tiny)).max(initial=0))


def only(*kinds: str, dtypes: str = "dfFD", of: Callable[[Engine, str], bool] | None = None) -> pytest.MarkDecorator:
    """A test of these kinds, all by default, of engines of which `of` holds.

    Emulated and in double precision unless other marks are selected.
    """
    found = []
    for engine in ENGINES.values():
        for kind in engine.kinds:
            if (kinds and kind not in kinds) or (of and not of(engine, kind)):
                continue
            for dtype in dtypes:
                for backend in ("emulated", "gpu") if engine.on_device else ("emulated",):
                    marks = [pytest.mark.thorough] if dtype != "d" else []
                    marks += [pytest.mark.gpu] if backend == "gpu" else []
                    name = f"{engine.name}-{kind}-{dtype}" + ("-gpu" if backend == "gpu" else "")
                    found.append(pytest.param((engine, kind, dtype, backend), id=name, marks=marks))
    return pytest.mark.parametrize("case", found, indirect=True)


EVERY = only()
