"""Matrices that are analysed in a way of their own: nearly dense, staircases, and those that keep their diagonal."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import _core, gallery
from gpusplu.common.timing import backward_error
from support.analyses import analyze, factor_canonical
from support.small_matrices import EPS, rhs
from support.solves import check_solves


def full(n=60, dtype="d", seed=0, zeros=0.1):
    """Some entries are zero, the diagonal among them."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if dtype in "FD" else 0)
    A[rng.random((n, n)) < zeros] = 0
    np.fill_diagonal(A, 0)
    return sp.csc_array(A.astype(dtype))


@pytest.mark.parametrize("dtype", list("fdFD"))
@pytest.mark.parametrize("n", [32, 60, 300])
def test_nothing_is_matched_and_all_rows_may_be_pivots(n, dtype):
    A = full(n, dtype)
    lu = gs.splu(A)
    core = lu.symbolic.parts()[1].core
    assert core.super_ptr.size == 2 and "matching" not in core.stages
    check_solves(A, lu)
    assert abs((lu.L @ lu.U)[lu.perm_r][:, lu.perm_c] - A).max() < 1e3 * EPS[dtype] * abs(A).max()
    lu.refactor(full(n, dtype, seed=1, zeros=0).toarray()[A.nonzero()])
    assert lu.stats.n_reanalyzed == 0


def test_sparser_and_smaller_ones_are_matched():
    for A in (full(60, zeros=0.3), full(31)):
        assert "matching" in gs.splu(A).symbolic.parts()[1].core.stages


def hessenberg(n, seed=0):
    """Half of it, the diagonal above what is small enough to be no pivot."""
    A = np.triu(np.random.default_rng(seed).standard_normal((n, n)), -1)
    A[np.arange(1, n), np.arange(n - 1)] += 10
    return A


@pytest.mark.parametrize("n", [50, 200])
def test_half_of_the_entries_are_one_front_where_nothing_falls_apart(n):
    A = sp.csc_array(hessenberg(n))
    lu = gs.splu(A)
    core = lu.symbolic.parts()[1].core
    assert core.super_ptr.size == 2 and "matching" not in core.stages
    check_solves(A, lu)


def test_half_of_the_entries_are_no_front_where_little_is_to_be_done():
    triangle = np.triu(hessenberg(100))
    turned = hessenberg(100)[:, ::-1]  # half of the diagonal is missing
    for A in map(sp.csc_array, (triangle, turned, hessenberg(300))):
        lu = gs.splu(A)
        assert lu.symbolic.method == "column"
        check_solves(A, lu)
    assert lu.symbolic.ordering == "natural"  # in its own order nothing fills up


@pytest.mark.parametrize("side", ["rows", "columns", "both"])
def test_scales_of_many_sizes(side):
    rng = np.random.default_rng(0)
    sizes = [sp.diags_array(10.0 ** rng.integers(-12, 12, 60)) for _ in range(2)]
    A = full()
    if side != "columns":
        A = sizes[0] @ A
    if side != "rows":
        A = A @ sizes[1]
    A = sp.csc_array(A)
    lu = gs.splu(A)
    check_solves(A, lu)
    assert lu.stats.n_perturbed == 0


def test_what_is_remembered_suits_other_values_of_that_size():
    gs.cache_clear()
    A = full(zeros=0)
    for seed in range(4):
        other = A.copy()
        other.data[:] = np.random.default_rng(seed).standard_normal(A.nnz)
        check_solves(other, gs.splu(other))
        x = gs.spsolve(other, rhs(60))
        assert backward_error(other, x, rhs(60)) < 100 * EPS["d"]
    assert gs.cache_info().misses == 1
    huge = A * 1e40
    check_solves(huge, gs.splu(huge))


SPOIL = {"zero column": np.s_[:, 7], "zero row": np.s_[7], "one row twice": np.s_[[7, 8]], "all ones": np.s_[:]}


@pytest.mark.parametrize("what", SPOIL)
def test_singular_ones_are_refused(what):
    A = full(zeros=0).toarray()
    np.fill_diagonal(A, 1)
    A[SPOIL[what]] = 0 if what.startswith("zero") else 1
    pattern = sp.csc_array(np.ones((60, 60)))
    with pytest.raises(RuntimeError, match="singular"):
        gs.splu(sp.csc_array((A.T.ravel(), pattern.indices, pattern.indptr)))


def staircase(steps=40, size=4, dtype="d", seed=0, density=1.0):
    """Almost block diagonal: each step couples the unknowns of two neighbours, the last rows those of both ends."""
    rng = np.random.default_rng(seed)
    n = size * (steps + 1)
    A = np.zeros((n, n), dtype)

    def full(*shape):
        values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype in "FD" else 0)
        return np.where(rng.random(shape) < density, values, 0)

    for k in range(steps):
        A[k * size : (k + 1) * size, k * size : (k + 2) * size] = full(size, 2 * size)
    A[-size:, :size], A[-size:, -size:] = full(size, size), full(size, size)
    return sp.csc_array(A)


def core_of(lu):
    return lu.symbolic.parts()[1].core


def is_left(lu):
    return core_of(lu).ordering == "natural" and "matching" not in core_of(lu).stages


@pytest.mark.parametrize("dtype", list("fdFD"))
@pytest.mark.parametrize("size", [2, 4, 6])
def test_staircases_keep_their_order(dtype, size):
    A = staircase(size=size, dtype=dtype)
    lu = gs.splu(A)
    assert is_left(lu)
    check_solves(A, lu)
    assert (lu.perm_c == np.arange(A.shape[0])).all()
    assert abs((lu.L @ lu.U)[lu.perm_r][:, lu.perm_c] - A).max() < 1e3 * EPS[dtype] * abs(A).max()


@pytest.mark.parametrize("seed", range(10))
def test_no_more_fills_up_than_is_said(seed):
    A = staircase(size=5, seed=seed, density=0.8)
    lu = gs.splu(A)
    assert is_left(lu)
    assert lu.L.nnz <= core_of(lu).lnz
    assert lu.L.nnz + lu.U.nnz <= 3 * A.nnz + A.shape[0]
    check_solves(A, lu)


def test_what_is_no_staircase_is_matched():
    A = staircase()
    n = A.shape[0]
    rng = np.random.default_rng(0)
    mixed = A[rng.permutation(n)][:, rng.permutation(n)]
    arrow = A.tolil()
    arrow[0] = arrow[:, 0] = 1  # near the diagonal it is, but everything fills up
    sizes = A * (10.0 ** rng.integers(-6, 6, n))[:, None]
    for B in (mixed, sp.csc_array(arrow), sp.csc_array(sizes), staircase(10)):
        B = sp.csc_array(B)
        lu = gs.splu(B)
        assert not is_left(lu)
        check_solves(B, lu)
    analyzed = gs.analyze(A)  # for any values and batches
    assert analyzed.ordering != "natural"


def test_no_pivot_in_a_column():
    A = staircase()
    without, zeros = A.tolil(), A.copy()
    without[:, 50] = 0
    zeros.data[zeros.indptr[50] : zeros.indptr[51]] = 0
    for B in (sp.csc_array(without), zeros):
        with pytest.raises(RuntimeError, match="exactly singular"):
            gs.splu(B)


def test_what_is_remembered_suits_values_of_rows_that_are_alike():
    gs.cache_clear()
    A = staircase()
    assert is_left(gs.splu(A))
    other = A.copy()
    other.data = staircase(seed=1).data
    again = gs.splu(other)
    assert again.symbolic.call == 1
    check_solves(other, again)
    rows = 10.0 ** np.random.default_rng(0).integers(-8, 8, A.shape[0])
    for index in (np.int32, np.int64):
        scaled = sp.csc_array(A * rows[:, None])
        scaled.indices, scaled.indptr = scaled.indices.astype(index), scaled.indptr.astype(index)
        lu = gs.splu(scaled)
        assert not is_left(lu)
        check_solves(scaled, lu)


def arrays(A):
    A = sp.csc_array(A)
    return A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data


def factor(A, **options):
    symbolic = analyze(*arrays(A), **options)
    return factor_canonical(symbolic, _core.canonical("csc", A.shape[0], A.indptr, A.indices), A.data)


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
