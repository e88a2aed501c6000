"""Matrices that are hard to factor. Each takes a random generator, an order and the decimal exponents of the type."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

Generator = Callable[[np.random.Generator, int, int], sp.csc_array]


def sparse(rng, n, density=0.15):
    """Random, with a permuted diagonal that makes it structurally regular."""
    A = sp.random_array((n, n), density=density, rng=rng, data_sampler=lambda size: rng.standard_normal(size))
    diagonal = sp.coo_array((rng.standard_normal(n), (rng.permutation(n), np.arange(n))), shape=(n, n))
    return sp.csc_array(A + diagonal)


def powers(rng, n, exponent):
    return 10.0 ** rng.uniform(-exponent, exponent, n)


def badly_scaled(rng, n, exponent):
    """Rows and columns differ by up to the range of the type."""
    A = sp.coo_array(sparse(rng, n))
    share = rng.choice((0.1, 0.4, 0.49, 0.95))
    rows, cols = (np.log10(powers(rng, n, exponent * share)) for _ in range(2))
    if share > 0.5:
        cols[:] = 0
    logs = rows[A.coords[0]] + cols[A.coords[1]]
    A.data *= 10.0 ** np.clip(logs, -exponent, exponent)
    return sp.csc_array(A)


def wild(rng, n, exponent):
    """Every entry has an exponent of its own."""
    A = sparse(rng, n)
    A.data *= powers(rng, A.nnz, exponent * rng.choice((0.2, 0.5, 0.95)))
    return A


def uniform(rng, n, exponent):
    """Ordinary, times one number near the end of the range."""
    A = sparse(rng, n) + sp.diags_array(np.full(n, 3.0))
    return sp.csc_array(A * 10.0 ** (rng.choice((-1, 1)) * exponent * rng.uniform(0.5, 0.98)))


def saddle(rng, n, exponent):
    m = max(n // 3, 1)
    B = sp.random_array((n - m, m), density=0.4, rng=rng) + sp.eye_array(n - m, m)
    H = sp.diags_array(10.0 ** rng.uniform(-8, 8, n - m))
    return sp.csc_array(sp.block_array([[H, B], [B.T, None]]))


def zero_diagonal(rng, n, exponent):
    A = sparse(rng, n, 0.3).tolil()
    A.setdiag(0)
    cycle = sp.coo_array((rng.standard_normal(n), (np.roll(np.arange(n), 1), np.arange(n))), shape=(n, n))
    A = sp.csc_array(sp.csc_array(A) + cycle)
    A.eliminate_zeros()
    return A


def nearly_singular(rng, n, exponent):
    """A row is a combination of two others, but for a small part."""
    A = sparse(rng, n, 0.25).toarray()
    if n > 2:
        i, j, k = rng.choice(n, 3, replace=False)
        A[i] = A[j] * rng.standard_normal() + A[k] + 10.0 ** rng.uniform(-18, -2) * (A[i] != 0)
    return sp.csc_array(A)


def exactly_singular(rng, n, exponent):
    """Integers, two rows or columns alike, or one without entries but stored zeros."""
    A = np.rint(3 * sparse(rng, n, 0.3).toarray())
    i, j = rng.integers(0, n, 2)
    if rng.random() < 0.5:
        A = A.T
    A[i] = A[j] if i != j else 0
    made = sp.csc_array(sparse(rng, n, 0.05))
    made.data[:] = 0
    return with_stored_zeros(sp.csc_array(A), made)


def with_stored_zeros(A, zeros):
    """The pattern of both, the values of A."""
    A, zeros = sp.coo_array(A), sp.coo_array(zeros)
    row, col = (np.concatenate(pair) for pair in zip(A.coords, zeros.coords, strict=True))
    return sp.csc_array(sp.coo_array((np.append(A.data, 0 * zeros.data), (row, col)), shape=A.shape))


def stored_zeros(rng, n, exponent):
    """Where no scale can be told from the entries."""
    return with_stored_zeros(badly_scaled(rng, n, exponent), sparse(rng, n, 0.1))


def permuted_triangular(rng, n, exponent):
    T = sp.csc_array(sp.triu(sparse(rng, n, 0.3), 1) + sp.diags_array(rng.choice((-1, 1), n) * powers(rng, n, 2)))
    return sp.csc_array(T[rng.permutation(n)][:, rng.permutation(n)])


def bidiagonal(rng, n, exponent):
    """Scales of a geometric sequence."""
    return sp.csc_array(sp.diags_array([10.0 ** rng.uniform(-4, 1), 1.0], offsets=[0, 1], shape=(n, n)))


def arrow(rng, n, exponent):
    """A dense row and a dense column, first or last, on a diagonal of any size."""
    A = np.diag(powers(rng, n, 6))
    end = rng.choice((0, -1))
    A[end], A[:, end] = rng.standard_normal((2, n))
    return sp.csc_array(A)


def dense_rows(rng, n, exponent):
    A = sparse(rng, n, 0.05).toarray()
    for i in rng.integers(0, n, 2):
        A[i] = rng.standard_normal(n) * powers(rng, 1, 6)
    return sp.csc_array(A if rng.random() < 0.5 else A.T)


def graded(rng, n, exponent):
    """Entries fall from one corner to the other."""
    A = sp.coo_array(sparse(rng, n, 0.3) + sp.eye_array(n))
    step = rng.uniform(0, exponent) / n
    A.data *= 10.0 ** (-step * (A.coords[0] + A.coords[1]) / 2)
    return sp.csc_array(A)


def circuit(rng, n, exponent):
    """Nodal analysis: conductances of many sizes and ideal voltage sources, whose rows have no diagonal."""
    sources = max(n // 6, 1)
    nodes = max(n - sources, 1)
    a, b = rng.integers(0, nodes, (2, 3 * nodes))
    g = 10.0 ** rng.uniform(-12, 4, a.size)
    G = sp.coo_array((np.concatenate((g, g, -g, -g)), (np.concatenate((a, b, a, b)), np.concatenate((a, b, b, a)))))
    G = sp.csc_array(sp.coo_array((G.data, G.coords), shape=(nodes, nodes)) + sp.diags_array(np.full(nodes, 1e-12)))
    plus = rng.permutation(nodes)[: n - nodes]
    V = sp.coo_array((np.ones(plus.size), (np.arange(plus.size), plus)), shape=(n - nodes, nodes))
    return sp.csc_array(sp.block_array([[G, V.T], [V, None]]) if n > nodes else G)


GENERATORS: dict[str, Generator] = {
    f.__name__: f
    for f in (
        *(badly_scaled, wild, uniform, saddle, zero_diagonal, nearly_singular, exactly_singular, stored_zeros),
        *(permuted_triangular, bidiagonal, arrow, dense_rows, graded, circuit),
    )
}
