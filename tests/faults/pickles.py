"""Pickles with flipped bits, lost bytes and exchanged pieces: a clean exception, or an object that works.

A flipped bit of a value is legal and makes another matrix, so an answer is checked against the matrix that the object
says it holds. ``python -m tests.faults.pickles SEED COUNT`` runs some cases in this process, and says which one before
each of them.
"""

from __future__ import annotations

import pickle
import random
import sys
import warnings
from functools import cache

import numpy as np
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.cost.calibration import for_core
from gpusplu.dispatch.pipeline import factor_values
from gpusplu.engines.interface import Analysis
from gpusplu.engines.problem import Problem

SIZE = 40


def matrix(kind: str, dtype: str) -> sp.csc_array:
    """A diagonally dominant matrix, unsymmetric or Hermitian, the same every time."""
    generator = np.random.default_rng(7)
    A = sp.random_array((SIZE, SIZE), density=0.06, rng=generator, format="csc") + 4 * sp.eye_array(SIZE)
    A = sp.csc_array(A + A.T if kind in ("cholesky", "ldlt") else A).astype(dtype)
    if kind == "scaled":
        A = sp.csc_array(sp.diags_array(10.0 ** generator.integers(-6, 6, SIZE)) @ A).astype(dtype)
    return A


@cache
def originals() -> list[bytes]:
    """Pickles of factors and analyses of every kind, by two protocols."""
    made = []
    for kind, dtype in (("lu", "d"), ("lu", "F"), ("scaled", "d"), ("cholesky", "d"), ("cholesky", "D"), ("ldlt", "d")):
        A = matrix(kind, dtype)
        if kind == "cholesky":
            made += [gs.cholesky(A), gs.analyze(sp.tril(A), cholesky=True)]
        elif kind == "ldlt":
            made += [gs.ldlt(A), gs.analyze(sp.tril(A), ldlt=True)]
        else:
            made += [gs.splu(A), gs.analyze(A.tocsr()), gs.splu(A, ordering="natural")]
            made += [factor_by_fronts(A), gs.splu(A, pivoting="partial")]
    return [pickle.dumps(one, protocol) for one in made for protocol in (2, 5)]


def factor_by_fronts(A: sp.csc_array) -> gs.LUFactor:
    """A factor by fronts, which splu would not choose for so few columns."""
    symbolic = gs.analyze(A)
    problem, _ = symbolic.parts()
    pattern, values = problem.pattern, problem.pattern.gather(A.data)
    core = gs._core.analyze(pattern.ptr, pattern.ind, values, for_core(), method="front")
    afresh = Problem(pattern, values, problem.kind, problem.options, problem.request)
    return gs.LUFactor(factor_values(gs.Symbolic(afresh, symbolic.choice, Analysis(core)), values))


def mutate(text: bytes, generator: random.Random) -> bytes:
    """Some bits, bytes or pieces changed."""
    changed = bytearray(text)
    for _ in range(generator.choice((1, 1, 1, 2, 5))):
        place, how = generator.randrange(len(changed)), generator.random()
        if how < 0.7:
            changed[place] ^= 1 << generator.randrange(8)
        elif how < 0.85:
            changed[place] = generator.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif how < 0.95:
            source, length = generator.randrange(len(changed)), generator.randrange(1, 17)
            piece = changed[source : source + length]
            changed[place : place + len(piece)] = piece
        else:
            del changed[place : place + generator.randrange(1, 9)]
    return bytes(changed)


def check(made: object) -> str:
    """What an unpickled object can do; an answer that is wrong is an AssertionError."""
    if isinstance(made, gs.Symbolic):
        values = matrix("cholesky" if made.cholesky else "lu", "d")
        made = made.factor(values if not made.cholesky else sp.tril(values))
    if not isinstance(made, gs.LUFactor | gs.CholeskyFactor):
        return "another"
    pattern, values = made._symbolic.parts()[0].pattern, made._core.values()
    A = sp.csc_array((values, pattern.ind, pattern.ptr), shape=made.shape)
    if isinstance(made, gs.CholeskyFactor):  # of the triangle below the diagonal in the order of elimination
        place = np.argsort(made.perm)
        read = A.tocoo()
        below = place[read.row] >= place[read.col]
        lower = sp.csc_array((read.data[below], (read.row[below], read.col[below])), shape=A.shape)
        A = lower + lower.conj().T - sp.diags_array(lower.diagonal().conj())
    b = np.ones(made.shape[0], made.dtype)
    x, warned = solution(made, b)
    A = A.astype(np.result_type(A.dtype, np.longdouble))  # products of its numbers are in range
    with np.errstate(all="ignore"):
        residual = abs(b - A @ x).max() / (abs(A).sum(axis=1).max() * abs(x).max() + 1)
    eps = float(np.finfo(made.dtype).eps)
    assert np.isfinite(x).all() or warned, "not finite, and no warning"
    assert residual <= 1e4 * eps or not np.isfinite(x).all(), f"backward error {residual:.2g}"
    made.refactor(pattern.size * [0.0] if pattern.size > 10**7 else original_values(made))
    made.explain(), made.L, made.nnz, made.slogdet()
    return "works"


def solution(factor: object, b: np.ndarray) -> tuple[np.ndarray, bool]:
    """Of a solve, and whether it warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = factor.solve(b)
    return x, any(issubclass(warning.category, RuntimeWarning) for warning in caught)


def original_values(factor: object) -> np.ndarray:
    """As many values as `factor` takes: those of a matrix that it can factor, or its own."""
    pattern = factor._symbolic.parts()[0].pattern
    return factor._core.values() if pattern.core.identity else np.ones(pattern.size, factor.dtype)


def run(seed: int) -> str:
    """One case: what came of it."""
    generator = random.Random(seed)
    text = mutate(generator.choice(originals()), generator)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return check(pickle.loads(text))
    except AssertionError:
        raise
    except Exception as error:  # any is clean
        return type(error).__name__


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:])
    for number in range(first, first + count):
        print(number, flush=True)
        print(run(number), flush=True)
