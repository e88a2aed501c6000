"""The arrays of a column plan on the host, slow and plain: what the plan in C++ and the column kernels must reproduce.

B = (Dr A Dc)[row_perm][:, col_perm] = L U without pivoting; the static pattern of L + U in compressed columns, the unit
diagonal of L not stored.
"""

from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp

from gpusplu.common.matrix import canonicalize, read_matrix
from gpusplu.engines.columns.plan import make_column_plan

MOST_MAPPED = 1e8  # multiply-adds up to which positions are in maps


def eliminate(dense):
    """Pattern of L + U of a boolean matrix with diagonal pivots."""
    filled = dense.copy()
    np.fill_diagonal(filled, True)
    for k in range(len(filled)):
        filled[k + 1 :, k + 1 :] |= np.outer(filled[k + 1 :, k], filled[k, k + 1 :])
    return filled


def column_levels(filled):
    """Level of every column, by the left-looking rule and by the corrected right-looking one.

    Left-looking: column k waits for every j with U(j, k) != 0. Right-looking: also for every j < k with L(k, j) != 0,
    whose updates read what column k's must not have changed yet (Lee, Achar and Nakhla, TVLSI 2018).
    """
    n = len(filled)
    left, right = np.zeros(n, np.int32), np.zeros(n, np.int32)
    for k in range(n):
        upper = np.flatnonzero(filled[:k, k])
        either = np.flatnonzero(filled[:k, k] | filled[k, :k])
        left[k] = left[upper].max(initial=-1) + 1
        right[k] = right[either].max(initial=-1) + 1
    return left, right


def levels_of(level, lengths):
    """(level_ptr, level_column): columns by level, the longest first inside one, then by number."""
    order = np.lexsort((np.arange(len(level)), -lengths, level)).astype(np.int32)
    n_levels = int(level.max(initial=-1)) + 1
    return np.searchsorted(level[order], np.arange(n_levels + 1)).astype(np.int32), order


def update_maps(plan):
    """(map_ptr, map) of the upper entries in the order of the columns; positions relative to the updated column."""
    ptr, positions = [0], []
    for k in range(plan.n):
        begin = plan.col_ptr[k]
        rows = plan.row[begin : plan.col_ptr[k + 1]]
        for j in rows[: plan.diag[k] - begin]:
            below = plan.row[plan.diag[j] + 1 : plan.col_ptr[j + 1]]
            found = np.searchsorted(rows, below)
            assert (rows[found] == below).all(), "an update falls outside the pattern"
            positions.append(found)
            ptr.append(ptr[-1] + len(below))
    flat = np.concatenate(positions) if positions else np.empty(0, int)
    return np.array(ptr, np.int64), flat.astype(np.uint16)


def make_columns(A, row_perm=None, col_perm=None, row_scale=None, col_scale=None):
    """The arrays for canonical A (csc_array); permutations are gathers, everything but A may be left out.

    The pivots of B have to be where the permutations put them.
    """
    n = A.shape[0]
    plan = SimpleNamespace(n=n)
    plan.row_perm = np.arange(n, dtype=np.int32) if row_perm is None else np.asarray(row_perm, np.int32)
    plan.col_perm = np.arange(n, dtype=np.int32) if col_perm is None else np.asarray(col_perm, np.int32)
    plan.row_scale = np.ones(n) if row_scale is None else row_scale
    plan.col_scale = np.ones(n) if col_scale is None else col_scale
    coo = A.tocoo()
    inverse_row, inverse_col = np.argsort(plan.row_perm), np.argsort(plan.col_perm)
    rows, cols = inverse_row[coo.coords[0]], inverse_col[coo.coords[1]]
    dense = np.zeros((n, n), bool)
    dense[rows, cols] = True
    add_pattern(plan, eliminate(dense))
    plan.entry_source = np.arange(A.nnz, dtype=np.int64)
    number = np.zeros((n, n), np.int64)
    number[plan.row, plan.column] = np.arange(plan.nnz)
    plan.entry_place = number[rows, cols]
    plan.entry_scale = plan.row_scale[coo.coords[0]] * plan.col_scale[coo.coords[1]]
    return plan


def add_pattern(plan, filled):
    """Everything that follows from the pattern of L + U."""
    n = plan.n
    columns, rows = sp.csc_array(filled), sp.csr_array(filled)
    columns.sort_indices(), rows.sort_indices()
    plan.col_ptr, plan.row = columns.indptr.astype(np.int64), columns.indices.astype(np.int32)
    plan.row_ptr, plan.col = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
    plan.nnz = len(plan.row)
    plan.column = np.repeat(np.arange(n, dtype=np.int32), np.diff(plan.col_ptr))  # of every entry; not in the contract
    number = sp.csc_array((np.arange(plan.nnz), plan.row, plan.col_ptr), shape=(n, n)).tocsr()
    plan.place = number.data.astype(np.int64)
    upper = plan.row < plan.column
    plan.u_ptr = np.concatenate([[0], np.cumsum(np.bincount(plan.column[upper], minlength=n))]).astype(np.int64)
    plan.diag = plan.col_ptr[:-1] + np.diff(plan.u_ptr)
    plan.level_left, level = column_levels(filled)
    plan.level = level
    plan.level_ptr, plan.level_column = levels_of(level, np.diff(plan.col_ptr))
    plan.n_levels = len(plan.level_ptr) - 1
    below = plan.col_ptr[1:] - plan.diag - 1
    plan.flops = float(below[plan.row[upper]].sum())
    plan.has_maps = plan.flops <= MOST_MAPPED
    plan.map_ptr, plan.map = update_maps(plan) if plan.has_maps else (np.zeros(1, np.int64), np.empty(0, np.uint16))


def pattern_of(A):
    return canonicalize(read_matrix(A))[0]


def planned(A, expected, **options):
    """The plan in C++ for the permutations and scales of a reference."""
    perms = expected.row_perm.astype(np.int32), expected.col_perm.astype(np.int32)
    scales = expected.row_scale.astype(float), expected.col_scale.astype(float)
    return make_column_plan(pattern_of(A), *perms, *scales, **options)


def random_columns(n, density=0.1, dtype="d", seed=0, symmetric=False, shuffled=True):
    """A random matrix whose diagonal dominates in B, and its plan: unsymmetric unless asked, permuted and scaled."""
    rng = np.random.default_rng(seed)
    dense = rng.random((n, n)) < density
    if symmetric:
        dense |= dense.T
    np.fill_diagonal(dense, True)
    B = rng.uniform(-1, 1, (n, n))
    if np.dtype(dtype).kind == "c":
        B = B + 1j * rng.uniform(-1, 1, (n, n))
    B = B * dense
    np.fill_diagonal(B, B.diagonal() + 2 + np.abs(B).sum(axis=0))
    row_perm, col_perm = rng.permutation(n), rng.permutation(n)
    row_scale, col_scale = 2.0 ** rng.integers(-2, 3, n), 2.0 ** rng.integers(-2, 3, n)
    if not shuffled:
        row_perm, col_perm, row_scale, col_scale = np.arange(n), np.arange(n), np.ones(n), np.ones(n)
    A = np.zeros((n, n), B.dtype)
    A[np.ix_(row_perm, col_perm)] = B
    A = sp.csc_array((A / row_scale[:, None] / col_scale).astype(dtype))
    A.sort_indices()
    return A, make_columns(A, row_perm, col_perm, row_scale, col_scale)


def random_plan(n, density=0.1, **options):
    """The core's plan of `random_columns`."""
    return planned(*random_columns(n, density, **options))


def plan_as_numbered(A):
    """The core's plan of a matrix whose pivots are its diagonal, in order."""
    order = np.arange(A.shape[0], dtype=np.int32)
    return make_column_plan(pattern_of(A), order, order)
