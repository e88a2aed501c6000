"""Columns that a block works on: what the plan lists of them."""

import numpy as np
import pytest
import scipy.sparse as sp

from gpusplu.cost.calibration import for_core
from support.column_reference import plan_as_numbered, random_plan

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
    return A, plan_as_numbered(A)


def listed(plan, columns):
    found = plan.long_columns(np.asarray(columns, np.int32), for_core())
    found["parts"], found["term"] = (found[name].view(np.int32) for name in ("parts", "term"))
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


@pytest.mark.parametrize("make", [lambda: branches(12, 3, 5)[1], lambda: random_plan(60, 0.06, seed=1)])
def test_parts(make):
    plan = make()
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
    A, plan = branches(60, 3, 1)
    assert choose(plan) == [180]
    terms = len(listed(plan, [180])[0]["term"]) // 2
    assert choose(plan, most_listed=terms) == [180]
    assert choose(plan, most_listed=terms - 1) == []  # they have no room
    before = sp.diags_array([np.full(1000, 4.0), np.ones(999), np.ones(999)], offsets=[0, 1, -1])
    late = sp.block_diag([before, A]).tolil()
    late[999, -1] = 1  # what comes before takes longer anyway
    assert choose(plan_as_numbered(sp.csc_array(late))) == []
    chain = sp.diags_array([np.full(200, 4.0), np.ones(199), np.ones(199)], offsets=[0, 1, -1]).tolil()
    chain[:, 199] = 1
    assert choose(plan_as_numbered(sp.csc_array(chain))) == []  # no two updates are independent


def choose(plan, **options):
    return plan.choose_long_columns(plan.n, for_core(), **options).tolist()
