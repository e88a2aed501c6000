"""Systems in lockstep on the processor, and entries of their inverses: as by NumPy, whatever is in the other lanes."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import _core, _core_testing, gallery
from gpusplu.common.timing import backward_error
from gpusplu.cost.calibration import for_core
from gpusplu.engines import registry
from gpusplu.engines.cpu.engine import CpuBatch
from support.dense_batch import DenseBatches, systems_like
from support.small_matrices import EPS, canonical, phased, random_matrix, rhs, spd_matrix

DTYPES = "fdFD"


OPS = (lambda M: M, lambda M: M.T, lambda M: M.conj().T)


COUNTS = (1, 7, 8, 9, 33)


METHODS = pytest.mark.parametrize("method", ["front", "column"])


def analysed(A, cholesky=False, method="front"):
    """Pointers, rows, canonical pattern, and the first analysis for a method."""
    ptr, ind = A.indptr.astype(np.int64), A.indices.astype(np.int32)
    pattern = _core.canonical("csc", A.shape[0], ptr, ind.astype(np.int64))
    analysis = _core.analyze_candidates(ptr, ind, A.data, for_core(), method=method, cholesky=cholesky)[0]
    return ptr, ind, pattern, analysis.with_scales_of(A.dtype.char)


def lockstep(A, count, cholesky=False, method="front", **options):
    """Room for systems with the pattern of `A`."""
    _, _, pattern, analysis = analysed(A, cholesky, method)
    return CpuBatch(_core.lockstep(analysis, pattern, count, A.data[:0], for_core(), **options))


def definite(A, count):
    """Values of Hermitian positive definite systems."""
    shifts = sp.eye_array(A.shape[0]) * abs(A).max()
    return np.array([(canonical(A + k * shifts).data) for k in range(count)], A.dtype)


def matrix_of(A, values):
    return sp.csc_array((values, A.indices, A.indptr), shape=A.shape)


def grid(side, dtype="d"):
    """Hermitian positive definite, with fronts of many widths."""
    path = sp.diags_array([-np.ones(side - 1), 4 * np.ones(side), -np.ones(side - 1)], offsets=[-1, 0, 1])
    eye = sp.eye_array(side)
    return phased(canonical(sp.kron(path, eye) + sp.kron(eye, path)), dtype, hermitian=True)


def blocks(dtype, seed=0):
    """Four diagonal blocks, of which some have one row, and entries above them; rows and columns in random order."""
    rng = np.random.default_rng(seed)
    A = sp.block_diag([random_matrix(n, dtype, seed=n) for n in (30, 1, 25, 1, 1, 12)]).tolil()
    above = np.triu(rng.random(A.shape) < 0.02, 31)
    A[above] = rng.normal(size=above.sum())
    return canonical(A.tocsc()[rng.permutation(70)][:, rng.permutation(70)], dtype)


def largest_error(A, values, b, x, trans):
    return max(backward_error(OPS[trans](matrix_of(A, v)), x[k], b[k]) for k, v in enumerate(values))


@METHODS
@pytest.mark.parametrize("matrix", [lambda dtype: random_matrix(70, dtype), blocks], ids=["random", "blocks"])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_lu_of_every_system(dtype, count, matrix, method):
    A = matrix(dtype)
    values, batch = systems_like(A, count), lockstep(A, count, method=method)
    batch.refactor(values)
    report = batch.report()
    assert (report["failed"] == -1).all() and not report["not_finite"].any() and not report["n_perturbed"].any()
    for trans in range(3):
        b = np.array([rhs(70, dtype, seed=k) for k in range(count)])
        x = batch.solve(b, trans)
        assert (x.shape, x.dtype) == (b.shape, A.dtype)
        assert largest_error(A, values, b, x, trans) < 20 * EPS[dtype]
        assert (batch.errors() < 20 * EPS[dtype]).all() and batch.errors().shape == batch.steps.shape == (count,)
        for k in range(count):
            expected = np.linalg.solve(OPS[trans](matrix_of(A, values[k])).toarray(), b[k])
            np.testing.assert_allclose(x[k], expected, rtol=0, atol=1e4 * EPS[dtype] * abs(expected).max())


@METHODS
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_are_those_of_a_system_alone(dtype, method):
    A = random_matrix(60, dtype, seed=3)
    values, b = systems_like(A, 33), np.array([rhs(60, dtype, seed=k) for k in range(33)])
    together = lockstep(A, 33, method=method)
    together.refactor(values)
    x = together.solve(b)
    for order in (np.arange(33)[::-1], np.array([5]), np.arange(7), np.array([0, 32, 3, 3, 3, 3, 3, 3, 1])):
        some = lockstep(A, len(order), method=method)
        some.refactor(values[order])
        np.testing.assert_array_equal(some.solve(b[order]), x[order])
        np.testing.assert_array_equal(some.errors(), together.errors()[order])
        for field in some.report().dtype.names:
            np.testing.assert_array_equal(some.report()[field], together.report()[field][order])


@METHODS
@pytest.mark.parametrize("dtype", DTYPES)
def test_bad_systems_leave_the_others_as_they_are(dtype, method):
    A = random_matrix(40, dtype, seed=5)
    values, b = systems_like(A, 20), np.array([rhs(40, dtype, seed=k) for k in range(20)])
    good = lockstep(A, 20, method=method)
    good.refactor(values)
    x = good.solve(b)
    bad = values.copy()
    bad[3, 7], bad[8, 0], bad[11] = np.nan, np.inf, 0
    bad[17, A.indptr[4] : A.indptr[5]] = 0
    mixed = lockstep(A, 20, method=method)
    mixed.refactor(bad)
    y, report = mixed.solve(b), mixed.report()
    others = np.setdiff1d(np.arange(20), [3, 8, 11, 17])
    np.testing.assert_array_equal(y[others], x[others])
    np.testing.assert_array_equal(report[others], good.report()[others])
    assert (np.flatnonzero(report["not_finite"]) == [3, 8]).all()
    assert report["n_tiny"][17] == report["n_perturbed"][17] == 1 and report["failed"][17] == 4
    assert report["n_tiny"][11] == 40 and report["failed"][11] >= 0
    assert not np.isfinite(mixed.errors()[[3, 8]]).any() and np.isnan(y[3]).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_first_column_without_a_positive_pivot(dtype):
    A = grid(7, dtype)
    batch, values = lockstep(A, 10, cholesky=True), definite(A, 10)
    place = A.indptr[23] + np.searchsorted(A.indices[A.indptr[23] : A.indptr[24]], 23)
    values[4, place], values[6, place], values[7, place] = -1, np.nan, 0
    batch.refactor(values)
    report = batch.report()
    assert (np.flatnonzero(report["failed"] >= 0) == [4, 6, 7]).all() and report["failed"][4] == 23
    assert (np.flatnonzero(report["not_finite"]) == [6]).all()
    b = np.array([rhs(49, dtype, seed=k) for k in range(10)])
    good, x = [k for k in range(10) if k not in (4, 6, 7)], batch.solve(b)
    assert largest_error(A, values[good], b[good], x[good], 0) < 20 * EPS[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
def test_growth_is_reported(dtype):
    """A small pivot that is none too small: multipliers are large, and refinement makes up for it."""
    small = 1e-3 if dtype in "fF" else 1e-6
    A = canonical(np.array([[4.0, 1, 0.5], [1, 4, 1], [0.5, 1, 4]], dtype))
    values = np.tile(A.data, (9, 1))
    values[5, [0, 4, 8]] *= small
    batch, never = lockstep(A, 9), lockstep(A, 9, refine="never")
    b = np.array([rhs(3, dtype, seed=k) for k in range(9)])
    batch.refactor(values), never.refactor(values)
    x, rough = batch.solve(b), never.solve(b)
    report = batch.report()
    assert (report["multiplier"] > 0.1 / small).nonzero()[0].tolist() == [5] and report["multiplier"].max() < 10 / small
    assert (report["growth"] > 0.1 / small).nonzero()[0].tolist() == [5]
    assert batch.steps[5] > 0 and batch.steps.sum() == batch.steps[5] and not never.steps.any()
    assert never.errors()[5] > 8 * EPS[dtype] > batch.errors()[5]
    others = np.arange(9) != 5
    np.testing.assert_array_equal(x[others], rough[others])
    assert largest_error(A, values, b, x, 0) <= 8 * EPS[dtype]


@pytest.mark.parametrize("exponent", [-135, 120])
def test_scales_that_single_precision_does_not_hold(exponent):
    A = random_matrix(30, "f", seed=7)
    A.data = np.ldexp(A.data, exponent)
    batch = lockstep(A, 4)
    batch.refactor(np.tile(A.data, (4, 1)))
    report = batch.report()
    assert not report["not_finite"].any() and (report["n_perturbed"] == 0).all() and (report["multiplier"] < 100).all()


@pytest.mark.parametrize("case", ["random", "definite", "blocks"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_instruction_set_factors_and_solves_at_once(level, dtype, case):
    """With the same bits, by all that is written past the caches too."""
    cholesky, method = case == "definite", "column" if case == "blocks" else "front"
    A = {
        "random": lambda: random_matrix(60, dtype),
        "definite": lambda: grid(9, dtype),
        "blocks": lambda: blocks(dtype),
    }[case]()
    few = definite(A, 18) if cholesky else systems_like(A, 18)
    count = 18 * (1 + (12 << 20) // few.nbytes)  # more than 8 MiB of values, which no cache is taken to hold
    ptr, ind, _, analysis = analysed(A, cholesky, method)
    b = np.array([rhs(A.shape[0], dtype, seed=k) for k in range(18)])
    for trans in range(3):
        apart = _core_testing.lockstep_solve(analysis, ptr, ind, for_core(), few.ravel(), b.ravel(), trans)
        assert largest_error(A, few, b, apart.reshape(b.shape), trans) < 20 * EPS[dtype]
        for repeats in (1, count // 18):
            many = np.tile(few, (repeats, 1)).ravel(), np.tile(b, (repeats, 1)).ravel()
            x = _core_testing.lockstep_solve(analysis, ptr, ind, for_core(), *many, trans, at_once=True)
            assert (x.reshape(repeats, -1) == apart).all()


@METHODS
@pytest.mark.parametrize("trans", range(3))
@pytest.mark.parametrize("dtype", DTYPES)
def test_systems_that_need_refinement_when_solved_at_once(dtype, trans, method):
    """Some groups at first, then most of them, then none: always the same bits as one after the other."""
    blocks = sp.kron(sp.eye_array(20), [[4, 1, 0.5], [1, 4, 1], [0.5, 1, 4]])
    between = sp.kron(sp.diags_array([np.ones(19)] * 2, offsets=[-1, 1]), np.diag([0.2, 0, 0]))  # more than one front
    A = canonical(blocks + between, dtype)
    diagonal = A.indices == np.repeat(np.arange(60), np.diff(A.indptr))
    b = np.array([rhs(60, dtype, seed=k) for k in range(60)])
    at_once = lockstep(A, 60, method=method)
    for every in (31, 3, 3, 60, 60):
        values = np.tile(A.data, (60, 1))
        values[5::every, diagonal] *= 1e-4 if dtype in "fF" else 1e-6
        apart = lockstep(A, 60, method=method)
        apart.refactor(values)
        np.testing.assert_array_equal(at_once.solve(b, trans, (values, None)), apart.solve(b, trans))
        np.testing.assert_array_equal(at_once.errors(), apart.errors())
        np.testing.assert_array_equal(at_once.steps, apart.steps)
        np.testing.assert_array_equal(at_once.report(), apart.report())
        assert at_once.steps.any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_whose_norm_is_no_number(dtype):
    """Sums of a row that leave the range: pivots and errors beside them would say nothing."""
    A, huge = random_matrix(40, dtype), np.finfo(dtype).max / 2
    values = systems_like(A, 9)
    values[4] = np.where(values[4] == 0, 0, huge)
    batch = lockstep(A, 9)
    batch.refactor(values)
    assert np.flatnonzero(batch.report()["not_finite"]).tolist() == [4]


@pytest.mark.parametrize("dtype", "dF")
@pytest.mark.parametrize("cholesky", [False, True])
@pytest.mark.parametrize("ask", ["solve", "slogdet", "inverse_on_pattern"])
def test_factors_that_a_solve_at_once_has_not_kept(ask, cholesky, dtype):
    """They are made again, with the same bits, when they are needed, and kept from then on."""
    A = spd_matrix(60, dtype) if cholesky else random_matrix(60, dtype)
    b = np.array([rhs(60, dtype, seed=k) for k in range(19)])
    arguments = (b, "T") if ask == "solve" else ()
    kept, batch = ((gs.cholesky_batch if cholesky else gs.splu_batch)(A, [A.data] * 19, engine="cpu") for _ in range(2))
    for scale in (1, 2, 3):
        values = np.array([(scale + k / 19) * A.data for k in range(19)], A.dtype)
        kept.refactor(values)
        expected = kept.solve(b)
        np.testing.assert_array_equal(batch.refactor_solve(values, b), expected)
        np.testing.assert_array_equal(batch.backward_error, kept.backward_error)
        for one, other in zip(getattr(batch, ask)(*arguments), getattr(kept, ask)(*arguments), strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(batch.solve(b), expected)
        assert batch.stats["side_by_side"] and not batch.status.any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["random", "mesh", "definite", "path"])
def test_entries_of_the_inverse(name, dtype, threads):
    """LU and Cholesky, with fronts of all sizes, one or many children, and in several trees; threads change no bit."""
    shifted = [gallery.poisson(*sides) + 2 * sp.eye_array(np.prod(sides)) for sides in ((9, 12), (200,))]
    A = {
        "random": lambda: random_matrix(90, dtype, density=0.05),
        "mesh": lambda: canonical(sp.block_diag([phased(shifted[0], dtype)] * 2)),
        "definite": lambda: phased(gallery.elasticity(4, 3, 3), dtype, hermitian=True),
        "path": lambda: phased(shifted[1], dtype),
    }[name]()
    cholesky = name == "definite"
    values = np.array([A.data * scale for scale in (1, 1.5, 2)] * 4, A.dtype)
    if not cholesky:
        values = systems_like(A, 12)
    batch = lockstep(A, 12, cholesky)
    batch.refactor(values)
    entries, errors = batch.inverse_on_pattern()
    assert entries.shape == values.shape and (errors < 100 * EPS[dtype]).all()
    columns = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    for k, one in enumerate(values):
        inverse = np.linalg.inv(sp.csc_array((one, A.indices, A.indptr)).toarray().astype(np.result_type(dtype, "d")))
        assert abs(entries[k] - inverse[columns, A.indices]).max() < 200 * EPS[dtype] * abs(inverse).max()
    threads(3)
    np.testing.assert_array_equal(batch.inverse_on_pattern()[0], entries)


def test_entries_of_the_inverse_that_the_common_pivots_spoil():
    """A system whose entries do not check themselves gets pivots of its own."""

    class Spoilt(DenseBatches):
        name = "spoilt"

        def batch(self, problem, analysis, count):
            batch = super().batch(problem, analysis, count)
            found = batch.inverse_on_pattern
            batch.inverse_on_pattern = lambda: (2 * found()[0], np.array([0, 1e-3, 0]))
            return batch

    A = canonical(sp.eye_array(30) * 10 + random_matrix(30))
    values = systems_like(A, 3)
    with registry.registered(Spoilt()):
        entries = gs.splu_batch(A, values, engine="spoilt").inverse_on_pattern()
    expected = gs.splu_batch(A, values).inverse_on_pattern()
    np.testing.assert_allclose(entries[[0, 2]], 2 * expected[[0, 2]], rtol=1e-9)
    np.testing.assert_allclose(entries[1], expected[1], rtol=1e-9)


@pytest.mark.parametrize("dtype", "dD")
def test_entries_of_the_inverse_beside_small_ones_of_the_matrix(dtype):
    """Large multipliers spoil them, and the ones do not tell."""
    A = sp.csc_array(np.array([[4, 1], [1, 4]], dtype))
    values = np.tile(A.data, (3, 1))
    values[1] = [3e-7, 1.1, 1, 7e-7]
    batch = gs.splu_batch(A, values)
    inverse = np.linalg.inv(values[1].reshape(2, 2).T)
    assert abs(batch.inverse_on_pattern()[1].reshape(2, 2) - inverse).max() < 1e-14


@pytest.mark.parametrize("dtype", DTYPES)
def test_pivots_are_those_of_the_matrix_with_the_pattern(dtype):
    """Where entries of the matching cancel, interchanged rows serve all systems."""
    A = canonical(sp.kron(sp.eye_array(20), [[1, 1, 0], [1, 1, 1], [0, 1, 1]]), dtype)
    values, b = np.array([(1 + k / 9) * A.data for k in range(9)]), np.array([rhs(60, dtype, seed=k) for k in range(9)])
    batch = gs.splu_batch(A, values, engine="cpu")
    x = batch.refactor_solve(values, b)
    assert batch.stats["side_by_side"] and not batch.status.any()
    assert largest_error(A, values, b, x, 0) < 20 * EPS[dtype]
    for k, (sign, logabsdet) in enumerate(zip(*batch.slogdet(), strict=True)):
        expected = np.linalg.slogdet(matrix_of(A, values[k]).toarray())
        np.testing.assert_allclose((sign, logabsdet), expected, rtol=0, atol=1e3 * EPS[dtype])
    inverse = np.linalg.inv(matrix_of(A, values[3]).toarray())
    columns = np.repeat(np.arange(60), np.diff(A.indptr))
    np.testing.assert_allclose(
        batch.inverse_on_pattern()[3], inverse[columns, A.indices], rtol=0, atol=1e3 * EPS[dtype]
    )
