"""What batches in lockstep have to fulfil, in the emulator as on a device; `put` takes arrays where they are given."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.engines import registry

from .small_matrices import EPS, phased, random_matrix, rhs
from .solves import on_host


def arrow(dtype, n=150):
    """Two rows and two columns are long."""
    A = sp.lil_array((n, n))
    A.setdiag(4.0)
    for k in (3, n - 2):
        A[k, :] = A[:, k] = np.linspace(0.1, 0.3, n)
        A[k, k] = n
    return phased(sp.csc_array(A), dtype)


LU = {
    "arrow": arrow,
    "random": lambda dtype: random_matrix(60, dtype),
    "poisson": lambda dtype: phased(gallery.poisson(9, 8), dtype),
    "cube": lambda dtype: phased(gallery.poisson(6, 5, 5), dtype),
}
CHOLESKY = {
    "poisson": lambda dtype: phased(gallery.poisson(9, 8), dtype, hermitian=True),
    "elasticity": lambda dtype: phased(gallery.elasticity(3, 2, 2), dtype, hermitian=True),
}
CASES = [(False, name, make) for name, make in LU.items()] + [(True, name, make) for name, make in CHOLESKY.items()]
EVERY = pytest.mark.parametrize(
    ("definite", "name", "matrix"), CASES, ids=lambda value: None if callable(value) else str(value)
)
KINDS = pytest.mark.parametrize(
    ("definite", "matrix"), [(False, LU["poisson"]), (True, CHOLESKY["poisson"])], ids=["lu", "cholesky"]
)


def make_batch(A, count, definite=False):
    """The supernodal engine's batch for `count` systems."""
    problem, analysis = gs.analyze(A, cholesky=definite, engine="supernodal").parts()
    return registry.named("supernodal").batch(problem, analysis, count)


def systems(A, count, seed=0):
    """Matrices with the pattern of A, and their values, shape (count, nnz): A scaled from both sides."""
    scales = 1 + 0.3 * np.random.default_rng(seed).random((count, A.shape[0]))
    columns = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    values = (scales[:, A.indices] * scales[:, columns] * A.data).astype(A.dtype, order="C")
    return [sp.csc_array((data, A.indices, A.indptr), A.shape) for data in values], values


def right_hand_sides(A, count, columns=()):
    return np.array([rhs(A.shape[0], A.dtype, columns, seed) for seed in range(count)])


def transposed(B, trans):
    return (B, B.T, B.conj().T)[trans]


def exact_error(op, x, b):
    """Normwise backward error in double precision."""
    wide = op.astype(np.result_type(op.dtype, "d"))
    size = abs(wide).sum(axis=1).max() * np.abs(x.astype(wide.dtype)).max() + np.abs(b.astype(wide.dtype)).max()
    return np.abs(b - wide @ x).max() / size


def check_solutions(A, definite, put, count=3, sound=True):
    """As accurate as ordinary factors, for all three ways to solve; `sound`: without refinement."""
    made, values = systems(A, count)
    batch, eps = make_batch(A, count, definite), EPS[A.dtype.char]
    batch.refactor(put(values))
    b = right_hand_sides(A, count)
    for trans in range(3):
        given = put(b)
        x = batch.solve(given, trans)
        assert type(x) is type(given) and x.shape == b.shape and x.dtype == b.dtype
        errors = batch.errors()
        for k, B in enumerate(made):
            op, alone = transposed(B, trans), (gs.cholesky if definite else gs.splu)(B, engine="cpu")
            error = backward_error(op, on_host(x)[k], b[k])
            assert error < max(20 * eps, 10 * backward_error(op, alone.solve(b[k], "NTH"[trans]), b[k]))
            assert errors[k] <= 8 * eps and error < 2 * errors[k] + eps
            if A.dtype.char in "fF":
                assert errors[k] == pytest.approx(exact_error(op, on_host(x)[k], b[k]), rel=1e-6)
    report = batch.report()
    assert (report["failed"] == -1).all() and not report["not_finite"].any()
    assert not sound or (not report["n_perturbed"].any() and not batch.steps.any())


def check_bits(A, definite, put, counts=(1, 31, 32, 33), most=70):
    """Neither the number of systems nor their order changes a bit."""
    _, values = systems(A, most)
    b = right_hand_sides(A, most)

    def solved(some):
        batch = make_batch(A, len(some), definite)
        batch.refactor(put(values[some]))
        return on_host(batch.solve(put(b[some]), 1)), batch.report()

    x, report = solved(np.arange(most))
    order = np.random.default_rng(1).permutation(most)
    for some in [np.arange(count) for count in counts] + [order, order[:33]]:
        found, its = solved(some)
        assert np.array_equal(found, x[some])
        assert np.array_equal(its, report[some])


def check_failures(put, dtype="d"):
    """Systems that are singular, indefinite or not finite are flagged, and do not affect others."""
    for definite in (False, True):
        A = CHOLESKY["poisson"](dtype)
        made, values = systems(A, 40)
        b = right_hand_sides(A, 40)
        batch = make_batch(A, 40, definite)
        batch.refactor(put(values))
        x = on_host(batch.solve(put(b)))
        zero, negative, bad, infinite = 3, 20, 35, 38
        diagonal = np.flatnonzero(A.indices == np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)))
        worse = values.copy()
        worse[zero, A.indptr[7] : A.indptr[8]] = 0  # a column
        worse[negative, diagonal] *= -1
        worse[bad, 11], worse[infinite, 0] = np.nan, np.inf
        batch.refactor(put(worse))
        report, y = batch.report(), on_host(batch.solve(put(b)))
        good = np.setdiff1d(np.arange(40), [zero, negative, bad, infinite])
        assert np.array_equal(y[good], x[good])
        assert (report["failed"][good] == -1).all() and (np.flatnonzero(report["not_finite"]) == [bad, infinite]).all()
        assert report["failed"][zero] == 7
        assert (report["failed"][negative] >= 0) == definite
        assert report["failed"][bad] >= 0
        assert (batch.errors()[good] <= 8 * EPS[dtype]).all()
        assert not batch.errors()[bad] <= 1


def check_refinement(put, dtype="d"):
    """Only systems with bad pivots are refined, and are accurate afterwards."""
    A = LU["poisson"](dtype)
    made, values = systems(A, 40)
    diagonal = np.flatnonzero(A.indices == np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)))
    weak = [5, 33]
    values[np.ix_(weak, diagonal[::3])] *= 1e-5 if dtype in "dD" else 1e-4
    b, batch = right_hand_sides(A, 40), make_batch(A, 40)
    batch.refactor(put(values))
    x, steps = on_host(batch.solve(put(b))), batch.steps
    assert (np.flatnonzero(steps) == weak).all() and steps.max() <= 3
    assert batch.report()["multiplier"][weak].min() > 10 * np.delete(batch.report()["multiplier"], weak).max()
    for k in (0, *weak):
        B = sp.csc_array((values[k], A.indices, A.indptr), A.shape)
        assert backward_error(B, x[k], b[k]) <= 10 * EPS[dtype]
    assert (batch.errors() <= 8 * EPS[dtype]).all()


def check_columns(put, dtype="d"):
    """Several right-hand sides have the bits of one after another."""
    A = LU["random"](dtype)
    _, values = systems(A, 5)
    batch, b = make_batch(A, 5), right_hand_sides(A, 5, (3,))
    batch.refactor(put(values))
    several, worst = on_host(batch.solve(put(b), 2)), batch.errors()
    errors = []
    for k in range(3):
        assert np.array_equal(several[:, :, k], on_host(batch.solve(put(np.ascontiguousarray(b[:, :, k])), 2)))
        errors.append(batch.errors())
    assert np.array_equal(worst, np.max(errors, axis=0))


def check_source(put, dtype="d"):
    """Values in the caller's order, with others in between."""
    A = LU["random"](dtype)
    _, values = systems(A, 4)
    source = np.random.default_rng(2).permutation(A.nnz + 9)[: A.nnz].astype(np.int64)
    theirs = np.full((4, A.nnz + 9), np.nan, dtype)
    theirs[:, source] = values
    batch, b = make_batch(A, 4), right_hand_sides(A, 4)
    batch.refactor(put(values))
    x = on_host(batch.solve(put(b)))
    batch.refactor(put(2 * values))
    batch.refactor(put(theirs), source)
    assert np.array_equal(on_host(batch.solve(put(b))), x) and not batch.report()["not_finite"].any()


def check_determinants(A, definite, put):
    made, values = systems(A, 35)
    batch = make_batch(A, 35, definite)
    batch.refactor(put(values))
    sign, logs = batch.slogdet()
    for k in (0, 34):
        expected = np.linalg.slogdet(made[k].toarray().astype(np.result_type(A.dtype, "d")))
        assert abs(sign[k] - expected[0]) < 1e3 * EPS[A.dtype.char]
        assert abs(logs[k] - expected[1]) < 1e3 * EPS[A.dtype.char]


def check_inverses(A, definite, put):
    """Entries of the inverses on the pattern, by the factors on the device."""
    made, values = systems(A, 35)
    batch = make_batch(A, 35, definite)
    batch.refactor(put(values))
    entries, errors = batch.inverse_on_pattern()
    assert entries.shape == values.shape and (errors < 100 * EPS[A.dtype.char]).all()
    columns = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    for k in (0, 31, 34):
        inverse = np.linalg.inv(made[k].toarray().astype(np.result_type(A.dtype, "d")))
        assert abs(entries[k] - inverse[columns, A.indices]).max() < 200 * EPS[A.dtype.char] * abs(inverse).max()
