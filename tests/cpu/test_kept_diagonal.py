"""Diagonals that are kept for the column method, without a matching, and what happens where they are no good."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import _core, gallery
from gpusplu.common.timing import backward_error
from support.analyses import analyze, factor_canonical


def arrays(A):
    A = sp.csc_array(A)
    return A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data


def factor(A, **options):
    symbolic = analyze(*arrays(A), **options)
    return factor_canonical(symbolic, _core.canonical_from_columns(A.shape[0], A.indptr, A.indices), A.data)


@pytest.mark.parametrize("step", [1e-11, 1e-10])
def test_lines_keep_their_diagonal(step):
    """For the longer step a matching takes pivots beside it, with which errors grow from section to section."""
    A = gallery.rlc_lines(6, 6, 30, step=step)
    f = factor(A)
    stats = f.stats()
    assert f.symbolic.keeps_diagonal and f.symbolic.method == "column"
    assert stats["pivot_growth"] < 10 and stats["n_off_diagonal"] <= 8 and stats["n_reanalyzed"] == 0
    b = A @ np.ones(A.shape[0])
    assert backward_error(A, f.solve(b), b) < 1e-15
    f.refactor(1.5 * A.data)
    assert backward_error(1.5 * A, f.solve(b), b) < 1e-15


def test_pieces_of_a_symmetric_pattern_are_blocks():
    A = sp.csc_array(sp.block_diag([gallery.rlc_lines(6, 6, 30), gallery.rlc_lines(6, 7, 30)]))
    f = factor(A, method="column")
    assert f.symbolic.keeps_diagonal and len(f.symbolic.block_ptr) == 3
    b = A @ np.ones(A.shape[0])
    assert backward_error(A, f.solve(b), b) < 1e-15


@pytest.mark.parametrize("spoil", ["pattern", "columns", "diagonal"])
def test_others_are_matched(spoil):
    A = sp.lil_array(gallery.rlc_lines(6, 6, 30))
    n = A.shape[0]
    if spoil == "pattern":
        A[5, n - 8] = 0.3
    elif spoil == "columns":
        A[:, [7]] *= 1e-4
    else:
        A.setdiag(np.where(np.arange(n) % 9 == 4, 1e-9, A.diagonal()))
    f = factor(sp.csc_array(A), method="column")
    assert not f.symbolic.keeps_diagonal and f.symbolic.col_scale.max() > 1


def growing(n):
    """Every diagonal entry is acceptable; with all of them as pivots the last columns grow fiftyfold in each step."""
    rng = np.random.default_rng(0)
    A = 0.02 * np.eye(n) - np.tril(rng.uniform(0.5, 1, (n, n)), -1) + 1e-18 * np.triu(np.ones((n, n)), 1)
    A[:, -4:] = rng.choice([-1, 1], (n, 4)) * rng.uniform(0.5, 1, (n, 4))
    return sp.csc_array(A)


def test_a_diagonal_that_is_no_good_gives_way_to_a_matching():
    A, order = growing(14), {"ordering": "user", "perm": np.arange(14, dtype=np.int32)}
    assert analyze(*arrays(A), method="column", **order).keeps_diagonal
    f = factor(A, method="column", **order)
    assert not f.symbolic.keeps_diagonal and f.stats()["n_reanalyzed"] == 1
    b = A @ np.ones(14)
    assert backward_error(A, f.solve(b), b) < 1e-14


def test_a_remembered_analysis_fits_as_long_as_the_diagonal_is_good():
    A = gallery.rlc_lines(6, 6, 30, step=1e-10)
    n = A.shape[0]
    gs.cache_clear()
    gs.splu(A, engine="cpu")
    other = sp.csc_array(
        (A.data * np.random.default_rng(0).uniform(0.9, 1.1, A.nnz), A.indices, A.indptr), shape=A.shape
    )
    assert gs.splu(other, engine="cpu").symbolic.call == 1
    spoiled = sp.csc_array(A - sp.diags_array(np.where(np.arange(n) % 4 == 0, A.diagonal(), 0)) * (1 - 1e-9))
    lu = gs.splu(spoiled, engine="cpu")
    assert lu.symbolic.call == 0
    b = spoiled @ np.ones(n)
    assert backward_error(spoiled, lu.solve(b), b) < 1e-14


def test_fronts_have_the_scales_of_a_matching():
    """What was analysed with the diagonal kept is not analysed again; only its scales are others."""
    A = gallery.named("convdiff:12")
    A.data *= np.random.default_rng(0).uniform(0.5, 2, A.nnz)
    symbolic, expected = analyze(*arrays(A)), analyze(*arrays(A), method="front")
    assert symbolic.method == expected.method == "front" and not symbolic.keeps_diagonal
    for name in ("row_perm", "col_perm", "row_scale", "col_scale", "super_ptr", "row_ind"):
        assert np.array_equal(getattr(symbolic, name), getattr(expected, name)), name
