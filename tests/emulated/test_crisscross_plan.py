"""The division of crisscross LU, and the terms and steps of its trailing columns."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from gpusplu import _core
from gpusplu.engines.crisscross.plan import dense_seconds, divide
from support.column_reference import random_plan


@pytest.mark.parametrize("p", [0, 1, 30, 59, 60])
def test_division(p):
    plan = random_plan(60, 0.05, seed=4)
    parts = divide(plan, p, "d")
    for k in range(60):
        column = plan.row[plan.col_ptr[k] : plan.col_ptr[k + 1]]
        assert parts.diag[k] - plan.col_ptr[k] == (column < min(k, p)).sum()
        row = plan.col[plan.row_ptr[k] : plan.row_ptr[k + 1]]
        assert parts.row_diag[k] - plan.row_ptr[k] == (row < min(k, p)).sum()
    if p == 60:
        assert parts.trailing is None
        return
    assert parts.trailing.nf == 1 and parts.trailing.n == 60 - p
    column = np.repeat(np.arange(60), np.diff(plan.col_ptr))
    expected = [e for e in range(plan.nnz) if plan.row[e] >= p and column[e] >= p]
    assert sorted(parts.trailing.entry_source) == expected


@pytest.mark.parametrize("p", [-1, 61])
def test_divisions_outside_are_rejected(p):
    plan = random_plan(60, 0.05, seed=4)
    with pytest.raises(ValueError, match="60 columns"):
        divide(plan, p, "d")


@pytest.mark.parametrize("m", [1, 2, 3, 70])
def test_one_supernode_is_one_front(m):
    symbolic = _core.one_supernode(m)
    assert symbolic.super_ptr.tolist() == [0, m]
    assert symbolic.row_perm.tolist() == symbolic.col_perm.tolist() == list(range(m))


def test_larger_trailing_blocks_take_longer():
    seconds = [dense_seconds(m, "d") for m in (0, 50, 200, 800)]
    assert seconds[0] == (0, 0)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(seconds))


def trailing_terms(plan, p, capacity=1200, kept=60, overlapped=10):
    return SimpleNamespace(**plan.trailing_terms(p, capacity, kept, overlapped, 8))


def ranked(plan, terms, p):
    """Of every column of the trailing block: its entries in the order of their terms, and where those begin."""
    for k in range(p, plan.n):
        first, end = plan.col_ptr[k : k + 2] - plan.col_ptr[p]
        uppers = (plan.row[plan.col_ptr[k] : plan.col_ptr[k + 1]] < p).sum()
        ranks, ptr = terms.order[first:end], terms.term_ptr[first : end + 1]
        assert sorted(ranks[:uppers]) == list(range(uppers))
        assert sorted(ranks[uppers:]) == list(range(uppers, end - first))
        yield k, uppers, ranks, ptr


@pytest.mark.parametrize("p", [0, 30, 59])
def test_terms_are_the_products(p):
    plan = random_plan(60, 0.05, seed=4)
    terms = trailing_terms(plan, p)
    dense = np.full((60, 60), -1)
    dense[plan.row, np.repeat(np.arange(60), np.diff(plan.col_ptr))] = np.arange(plan.nnz)
    for k, _, ranks, ptr in ranked(plan, terms, p):
        for r, t in enumerate(ranks):
            i = plan.row[plan.col_ptr[k] + t]
            expected = [j for j in range(min(i, k, p)) if dense[i, j] >= 0 and dense[j, k] >= 0]
            here = slice(ptr[r], ptr[r + 1])
            assert terms.place[here].tolist() == [dense[i, j] for j in expected]
            assert terms.position[here].tolist() == [dense[j, k] - plan.col_ptr[k] for j in expected]
    assert plan.count_trailing_terms(p) == len(terms.place) == terms.term_ptr[-1]


@pytest.mark.parametrize("capacity", [16, 200, 100000])
def test_steps_of_u12_wait_for_each_other(capacity):
    """Steps know all of their terms, fill batches, and those of a batch have room together or are one entry."""
    plan = random_plan(120, 0.03, seed=9)
    p = 90
    terms = trailing_terms(plan, p, capacity, kept=0)
    batches, steps = [], []
    for c, (k, uppers, ranks, ptr) in enumerate(ranked(plan, terms, p)):
        step = terms.step[terms.step_ptr[c] : terms.step_ptr[c + 1]]
        batch = [1, *terms.batch[terms.batch_ptr[c] : terms.batch_ptr[c + 1]]]
        assert step[-1] == uppers and batch[-1] == len(step) and (ptr[: step[0] + 1] == ptr[0]).all()
        step_of = np.empty(uppers, int)
        step_of[ranks[:uppers]] = np.searchsorted(step, np.arange(uppers), side="right")
        for r in range(step[0], uppers):
            assert ptr[r + 1] > ptr[r]
            assert step_of[terms.position[ptr[r] : ptr[r + 1]]].max() < step_of[ranks[r]]
        needed = [
            4 + 8 * (step[b - 1] - step[a - 1]) + 12 * (ptr[step[b - 1]] - ptr[step[a - 1]]) for a, b in pairwise(batch)
        ]
        entries = [step[b - 1] - step[a - 1] for a, b in pairwise(batch)]
        assert all(many <= capacity or count == 1 for many, count in zip(needed, entries, strict=True))
        full = [c < 10 and b - a == 16 for a, b in pairwise(batch)]
        assert all(a + b > capacity or long for (a, b), long in zip(pairwise(needed), full[:-1], strict=True))
        assert c >= 10 or max(np.diff(batch), default=0) <= 16
        first_need = terms.batch_ptr[c] + c
        waited = set()
        for b, (begin, end) in enumerate(pairwise([*batch, len(step) + 1])):
            needs = terms.need[terms.need_ptr[first_need + b] : terms.need_ptr[first_need + b + 1]].tolist()
            assert len(set(needs)) == len(needs) and not waited & set(needs)
            waited |= set(needs)
            last = step[end - 1] if end <= len(step) else uppers
            sources = terms.position[ptr[step[begin - 1]] : ptr[last]] if begin <= len(step) else []
            assert waited >= set(plan.row[plan.col_ptr[k] + np.asarray(sources, int)].tolist())
        assert waited == set(plan.row[plan.col_ptr[k] :][:uppers].tolist())
        batches.append(len(needed))
        steps.append(len(step) - 1)
    assert min(max(steps[:10]), max(steps[10:])) > 16
    assert [max(batches[:10]), max(batches[10:])] == [2, 1] if capacity == 100000 else max(batches) > 3
