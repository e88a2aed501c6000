"""Matrices of the records of bits. Values are small multiples of powers of two, so that no sum of them is rounded, and
random numbers are NumPy's integers: the same everywhere. The gallery's are as it makes them; hashes of all inputs are
recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from gpusplu import gallery

LU, LDLT, ALL = ("lu",), ("lu", "ldlt"), ("lu", "cholesky", "ldlt")


@dataclass(frozen=True)
class Case:
    """A matrix and the factorizations that it has."""

    make: Callable[[], sp.csc_array]
    kinds: tuple[str, ...] = LU


def small(rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
    """Multiples of 1/16 from -4 to 4, none of them 0."""
    numbers = rng.integers(1, 65, shape) / 16
    return np.where(rng.integers(0, 2, shape), numbers, -numbers)


def canonical(A: sp.sparray) -> sp.csc_array:
    A = sp.csc_array(A)
    A.sum_duplicates()
    return A


def entries(rng: np.random.Generator, n: int, per_column: float) -> sp.coo_array:
    """Off-diagonal entries at random places."""
    count = int(n * per_column)
    rows, columns = rng.integers(0, n, (2, count))
    keep = rows != columns
    return sp.coo_array((small(rng, count)[keep], (rows[keep], columns[keep])), shape=(n, n))


def unsymmetric(n: int, seed: int, per_column: float = 3, dominant: bool = True) -> sp.csc_array:
    """Rows exchanged so that the large diagonal is hidden."""
    rng = np.random.default_rng(seed)
    diagonal = (16 if dominant else 1) * small(rng, n)
    A = canonical(entries(rng, n, per_column) + sp.diags_array(diagonal))
    return canonical(A[rng.permutation(n)])


def symmetric(n: int, seed: int, shift: float, per_column: float = 2) -> sp.csc_array:
    rng = np.random.default_rng(seed)
    half = entries(rng, n, per_column)
    return canonical(half + half.T + sp.diags_array(shift + small(rng, n)))


def definite(n: int, seed: int) -> sp.csc_array:
    """Diagonally dominant: the diagonal is more than what is beside it."""
    A = symmetric(n, seed, 0.0)
    A.setdiag(0)
    A.eliminate_zeros()
    return canonical(A + sp.diags_array(1 + abs(A).sum(axis=0)))


def zero_diagonal(n: int, seed: int) -> sp.csc_array:
    """Symmetric, of pairs that only pivots of order 2 suit."""
    rng = np.random.default_rng(seed)
    pairs = sp.kron(sp.eye_array(n // 2), np.array([[0.0, 1.0], [1.0, 0.0]]))
    half = sp.triu(entries(rng, n, 1), 1)
    return canonical(8 * pairs + half + half.T)


def network(n: int, seed: int) -> sp.csc_array:
    """Modified nodal analysis: conductances of many sizes, and voltage sources without a diagonal."""
    rng = np.random.default_rng(seed)
    sources = n // 6
    nodes = n - sources
    a, b = rng.integers(0, nodes, (2, 3 * nodes))
    g = 2.0 ** rng.integers(-30, 10, a.size)
    rows, columns = np.concatenate([a, b, a, b]), np.concatenate([a, b, b, a])
    G = sp.coo_array((np.concatenate([g, g, -g, -g]), (rows, columns)), shape=(nodes, nodes))
    V = sp.coo_array((np.ones(sources), (np.arange(sources), rng.permutation(nodes)[:sources])), shape=(sources, nodes))
    gains = sp.coo_array((small(rng, nodes // 4), (rng.integers(0, nodes, (2, nodes // 4)))), shape=(nodes, nodes))
    return canonical(sp.block_array([[canonical(G + gains + 2.0**-20 * sp.eye_array(nodes)), V.T], [V, None]]))


def triangular(n: int, seed: int, upper: bool = False, permuted: bool = False) -> sp.csc_array:
    rng = np.random.default_rng(seed)
    T = sp.tril(entries(rng, n, 3), -1) + sp.diags_array(small(rng, n))
    T = canonical(T.T if upper else T)
    return canonical(T[rng.permutation(n)][:, rng.permutation(n)]) if permuted else T


def blocks(sizes: tuple[int, ...], seed: int) -> sp.csc_array:
    """Block upper triangular, rows and columns exchanged."""
    rng = np.random.default_rng(seed)
    A = sp.block_diag([unsymmetric(n, seed + k) for k, n in enumerate(sizes)])
    n = A.shape[0]
    above = sp.triu(entries(rng, n, 1), max(sizes))
    return canonical(canonical(A + above)[rng.permutation(n)][:, rng.permutation(n)])


def scaled(A: sp.csc_array, seed: int, exponent: int, symmetrically: bool = False) -> sp.csc_array:
    """Rows and columns by powers of two."""
    rng = np.random.default_rng(seed)
    rows, columns = 2.0 ** rng.integers(-exponent, exponent + 1, (2, A.shape[0]))
    return canonical(sp.diags_array(rows) @ A @ sp.diags_array(rows if symmetrically else columns))


def nearly_singular(n: int, gap: float = 2.0**-40) -> sp.csc_array:
    """A grid, and pairs of columns that nearly cancel: pivots by a static order are perturbed."""
    pairs = sp.kron(sp.eye_array(n), np.array([[1.0, 1.0], [1.0, 1.0 + gap]]))
    coupling = sp.coo_array((np.full(n, 0.125), (np.arange(0, 2 * n, 2), np.arange(n))), shape=(2 * n, n))
    tail = definite(n, 7)
    return canonical(sp.block_diag([gallery.poisson(6, 6), sp.block_array([[pairs, coupling], [coupling.T, tail]])]))


def arrow(n: int, first: bool) -> sp.csc_array:
    """A dense row and a dense column."""
    rng = np.random.default_rng(n)
    A = np.diag(16 * small(rng, n))
    end = 0 if first else -1
    A[end], A[:, end] = small(rng, (2, n))
    A[end, end] = 64
    return canonical(A)


def dense(n: int, seed: int) -> sp.csc_array:
    return canonical(small(np.random.default_rng(seed), (n, n)))


def band(n: int, width: int, seed: int) -> sp.csc_array:
    rng = np.random.default_rng(seed)
    offsets = range(-width, width + 1)
    return canonical(sp.diags_array([small(rng, n - abs(k)) + (16 if k == 0 else 0) for k in offsets], offsets=offsets))


def named(name: str, kinds: tuple[str, ...] = LU) -> Case:
    return Case(partial(gallery.named, name), kinds)


CASES: dict[str, Case] = {
    **{
        name: named(name, ALL)
        for name in ("poisson:7x7", "poisson:30x30", "poisson:70x70", "elast:3x3x2", "elast:5x4x4")
    },
    **{
        name: named(name)
        for name in ("convdiff:5", "convdiff:11", "rlc:6x6", "rlc:20x20", "lines:3x5x8", "circuit:40x60")
    },
    **{name: named(name) for name in ("power:8x8", "power:25x25")},
    **{name: named(name, LDLT) for name in ("kkt:30x10", "kkt:60x25x4", "stokes:5x4", "stokes:9x8", "mixed:6x5")},
    **{name: named(name, LDLT) for name in ("helmholtz:8x8", "helmholtz:24x24")},
    **{f"unsymmetric {n}": Case(partial(unsymmetric, n, n)) for n in (1, 2, 3, 10, 60, 150, 400)},
    **{f"unsymmetric, weak diagonal {n}": Case(partial(unsymmetric, n, n, 4, False)) for n in (12, 80, 200)},
    **{f"definite {n}": Case(partial(definite, n, n), ALL) for n in (1, 2, 15, 80, 300)},
    **{f"indefinite {n}": Case(partial(symmetric, n, n, 0.0), LDLT) for n in (2, 15, 80, 250)},
    **{f"zero diagonal {n}": Case(partial(zero_diagonal, n, n), LDLT) for n in (2, 20, 100)},
    **{f"network {n}": Case(partial(network, n, n)) for n in (18, 90, 360)},
    "lower triangle": Case(partial(triangular, 50, 1)),
    "upper triangle": Case(partial(triangular, 50, 2, True)),
    "permuted triangle": Case(partial(triangular, 50, 3, False, True)),
    "diagonal": Case(lambda: canonical(sp.diags_array(small(np.random.default_rng(4), 30))), LDLT),
    "identity": Case(lambda: canonical(sp.eye_array(8)), ALL),
    "block triangle": Case(partial(blocks, (20, 1, 7, 1, 1, 30), 5)),
    "tridiagonal": Case(partial(band, 100, 1, 6)),
    "band": Case(partial(band, 120, 6, 7)),
    "dense 4": Case(partial(dense, 4, 8)),
    "dense 40": Case(partial(dense, 40, 9)),
    "arrow, first": Case(partial(arrow, 40, True)),
    "arrow, last": Case(partial(arrow, 40, False)),
    "badly scaled 60": Case(lambda: scaled(unsymmetric(60, 60), 1, 24)),
    "badly scaled network": Case(lambda: scaled(network(90, 90), 2, 10)),
    "badly scaled definite": Case(lambda: scaled(definite(80, 80), 3, 12, True), ALL),
    "badly scaled indefinite": Case(lambda: scaled(symmetric(80, 80, 0.0), 4, 12, True), LDLT),
    "nearly singular 20": Case(partial(nearly_singular, 20), LDLT),
    "nearly singular 60, in single precision too": Case(partial(nearly_singular, 60, 2.0**-18), LDLT),
    "singular": Case(lambda: canonical(np.array([[1.0, 2, 0], [2, 4, 0], [0, 0, 1]])), ALL),
    "structurally singular": Case(lambda: canonical(np.array([[1.0, 0, 1], [1, 0, 0], [1, 0, 3]]))),
    "empty": Case(lambda: sp.csc_array((0, 0))),
}
#: Those for the emulator.
FOR_DEVICES = ("poisson:7x7", "stokes:5x4", "rlc:6x6", "unsymmetric 60", "network 90", "definite 80", "badly scaled 60")

#: Powers of the imaginary unit, exact.
PHASES = np.array([1, 1j, -1, -1j])


def in_scalar(A: sp.csc_array, scalar: str, hermitian: bool = True) -> sp.csc_array:
    """`A` in another type; entries of a complex one have all phases, and symmetric ones become Hermitian if not told
    to stay symmetric."""
    if np.dtype(scalar).kind == "c" and A.shape[0]:
        turn = PHASES[np.arange(A.shape[0]) % 4]
        other = turn.conj() if hermitian else turn
        A = canonical(sp.diags_array(turn) @ A @ sp.diags_array(other))
    return A.astype(scalar)


def other_values(A: sp.csc_array, symmetric: bool) -> np.ndarray:
    """New values: rows and columns of A by numbers from 1/2 to 3/2, the same ones where it is symmetric."""
    rng = np.random.default_rng(A.shape[0])
    rows, columns = rng.integers(8, 25, (2, A.shape[0])) / 16
    owner = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    return (A.data * rows[A.indices] * (rows if symmetric else columns)[owner]).astype(A.dtype)


def wild_values(A: sp.csc_array, kind: str) -> np.ndarray:
    """New values of very different size, so that other pivots suit them; those of LDL^T stay Hermitian or symmetric."""
    factors = 2.0 ** np.random.default_rng(A.nnz).integers(-12, 1, A.nnz)
    if kind != "ldlt":
        return (A.data * factors).astype(A.dtype)
    scale = canonical(sp.csc_array((factors, A.indices, A.indptr), shape=A.shape))
    half = sp.tril(scale, -1)
    both = canonical(half + half.T + sp.diags_array(scale.diagonal()))
    places = canonical(sp.csc_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape))
    return (A.data * canonical(both.multiply(places)).data).astype(A.dtype)


def right_hand_sides(n: int, scalar: str) -> np.ndarray:
    rng = np.random.default_rng(n + 1)
    b = small(rng, (n, 3))
    return (b + 1j * small(rng, (n, 3))).astype(scalar) if np.dtype(scalar).kind == "c" else b.astype(scalar)
