"""Columns that a block works on: what the plan lists of them, and the factorization by the emulator."""

import numpy as np
import pytest
import scipy.sparse as sp

from gpusplu.engines.columns.groups import make_groups
from gpusplu.engines.crisscross.plan import divide
from support import emulated
from support.analyses import choose_long_columns, long_columns
from support.column_driver import Factorization, groups
from support.column_reference import factor, make_columns, random_columns
from support.small_matrices import EPS, dtypes

PARTS = ("target", "level", "depths", "huge_end", "deep_end", "rest", "rest_count", "shallow", "shallow_count")


def branches(blocks, size, tail, dtype="d", density=0.7, seed=0):
    """Small blocks that do not touch each other, and `tail` rows and columns that touch them all."""
    rng = np.random.default_rng(seed)
    n = blocks * size + tail
    dense = np.kron(np.eye(blocks), rng.uniform(-0.3, 0.3, (size, size)))
    A = np.zeros((n, n), dtype)
    A[: n - tail, : n - tail] = dense
    A[:, n - tail :] = rng.uniform(-1, 1, (n, tail)) * (rng.random((n, tail)) < density)
    A[n - tail :] = rng.uniform(-1, 1, (tail, n)) * (rng.random((tail, n)) < density)
    if np.dtype(dtype).kind == "c":
        A *= np.exp(1j * np.arange(n))
    np.fill_diagonal(A, np.concatenate([np.full(n - tail, 3), np.full(tail, n)]))
    A = sp.csc_array(A)
    return A, make_columns(A)


def listed(plan, columns):
    found = long_columns(plan.col_ptr, plan.row, plan.diag, np.asarray(columns, np.int32))
    parts = [dict(zip(PARTS, part, strict=True)) for part in found["parts"].reshape(-1, len(PARTS)).tolist()]
    return found, parts


def terms_of(plan, k):
    """By position: (place of L(i, j), position of U(j, k)) in the order of j."""
    rows = plan.row[plan.col_ptr[k] : plan.col_ptr[k + 1]]
    terms = {}
    for t in range(plan.diag[k] - plan.col_ptr[k]):
        for q in range(plan.diag[rows[t]] + 1, plan.col_ptr[rows[t] + 1]):
            terms.setdefault(int(np.searchsorted(rows, plan.row[q])), []).append((q, t))
    return terms


@pytest.mark.parametrize("make", [lambda: branches(12, 3, 5), lambda: random_columns(60, 0.06, seed=1)])
def test_parts(make):
    _, plan = make()
    columns = [k for k in range(plan.n) if plan.diag[k] > plan.col_ptr[k]][-12:]
    found, parts = listed(plan, columns)
    some_shallow = 0
    for k, part in zip(columns, parts, strict=True):
        terms = terms_of(plan, k)
        shallow = found["shallow"][part["shallow"] :][: part["shallow_count"]].tolist()
        rest = found["rest"][part["rest"] :][: part["rest_count"]].tolist()
        assert sorted(shallow + rest) == list(range(plan.diag[k] - plan.col_ptr[k]))
        assert rest == sorted(rest)
        known = {t for t in shallow if t not in terms}
        ends = found["level"][part["level"] :][: part["depths"]].tolist()
        begin = part["target"]
        for end in ends:  # a depth needs those before only
            depth = found["target"][begin:end].tolist()
            assert depth
            assert all(from_ in known for t in depth for _, from_ in terms[t])
            known |= set(depth)
            begin = end
        assert known == set(shallow)
        some_shallow += len(shallow)
        for i in range(part["target"], part["deep_end"]):
            t = int(found["target"][i])
            here = found["term"].reshape(-1, 2)[found["term_ptr"][i] : found["term_ptr"][i + 1]]
            assert list(map(tuple, here.tolist())) == [term for term in terms[t] if term[1] in known]
        deep = found["target"][begin : part["deep_end"]].tolist()
        assert set(deep) == {t for t in terms if t not in known and any(f in known for _, f in terms[t])}
    assert some_shallow > 0


def test_columns_are_chosen_by_work_and_by_what_comes_before():
    _, plan = branches(60, 3, 1)
    assert choose(plan) == [180]
    arrays = plan.col_ptr, plan.row, plan.diag, plan.level
    terms = len(long_columns(*arrays[:3], np.array([180], np.int32))["term"]) // 2
    assert choose_long_columns(*arrays, most_listed=terms).tolist() == [180]
    assert choose_long_columns(*arrays, most_listed=terms - 1).tolist() == []  # they have no room
    level = plan.level + 1000  # what comes before takes longer anyway
    assert choose_long_columns(plan.col_ptr, plan.row, plan.diag, level).tolist() == []
    chain = sp.diags_array([np.full(200, 4.0), np.ones(199), np.ones(199)], offsets=[0, 1, -1]).tolil()
    chain[:, 199] = 1
    assert choose(make_columns(sp.csc_array(chain))) == []  # no two updates are independent


def choose(plan):
    return choose_long_columns(plan.col_ptr, plan.row, plan.diag, plan.level).tolist()


def check(plan, values, lu):
    expected = factor(plan, values)
    error = np.abs(lu - expected).max() / np.abs(expected).max()
    assert error < 50 * EPS[values.dtype.char]


def run(A, plan, longs, dtype="d", capacity=1000):
    here = groups(plan, 60, min(capacity, 200), 12, np.asarray(longs, np.int32))
    return Factorization(plan, here, dtype, capacity=capacity, longs=longs), here


@pytest.mark.parametrize("dtype", dtypes())
@pytest.mark.parametrize("capacity", [60, 1000])
def test_long_columns_among_others(dtype, capacity):
    A, plan = branches(20, 8, 6, dtype)
    longs = list(range(plan.n - 5, plan.n)) + [40]
    factorization, _ = run(A, plan, sorted(longs), dtype, capacity)
    lu, status = factorization.run(A.data)
    check(plan, A.data, lu)
    assert status["n_perturbed"] == 0


def test_entries_with_most_terms_are_summed_by_all_warps():
    A, plan = branches(560, 1, 3, density=1)
    found, (part,) = listed(plan, [plan.n - 1])
    huge = [i for i in range(part["target"], part["huge_end"]) if np.diff(found["term_ptr"])[i] > 512]
    assert huge
    factorization, _ = run(A, plan, [plan.n - 1])
    check(plan, A.data, factorization.run(A.data)[0])


def test_rows_of_a_trailing_block_come_along():
    A, plan = branches(40, 3, 6)
    p = plan.n - 3
    expected = factor(plan, A.data, p)
    plan.diag = divide(plan, p, "d").diag
    longs = np.array([p - 2, p - 1], np.int32)
    here = make_groups(plan, p, 60, 200, 12, single=longs)
    lu, _ = Factorization(plan, here, "d", capacity=1000, division=p, longs=longs).run(A.data)
    upto = plan.col_ptr[p]
    assert np.abs(lu - expected)[:upto].max() < 50 * EPS["d"] * np.abs(expected).max()


def test_bits_repeat_in_any_order_of_threads_and_by_levels():
    A, plan = branches(40, 3, 6)
    longs = list(range(plan.n - 4, plan.n))
    factorization, _ = run(A, plan, longs)
    lu, _ = factorization.run(A.data)
    for seed, by_levels in ((1, False), (2, True), (3, False)):
        again, _ = factorization.run(A.data, seed=seed, grid=seed, by_levels=by_levels)
        assert again.tobytes() == lu.tobytes()


def test_shallow_entries_are_waited_for():
    A, plan = branches(40, 3, 1)
    factorization, here = run(A, plan, [plan.n - 1])
    factorization.run(A.data)
    with pytest.raises(emulated.EmulationError, match="waited too long"):
        factorization.run(A.data, level_ptr=here.level_ptr[[1, -1]])


def test_small_and_bad_pivots_of_long_columns_are_reported_once():
    A, plan = branches(40, 3, 1)
    dense = A.toarray()
    schur = dense[-1, :-1] @ np.linalg.solve(dense[:-1, :-1], dense[:-1, -1])
    diagonal = A.indptr[-1] - 1
    A.data[diagonal] = schur
    factorization, _ = run(A, plan, [plan.n - 1])
    lu, status = factorization.run(A.data, tiny=1e-8)
    assert abs(lu[plan.diag[-1]]) == 1e-8
    assert status["n_perturbed"] == 1
    A.data[diagonal] = np.nan
    _, status = factorization.run(A.data)
    assert status["not_finite"] == 1
