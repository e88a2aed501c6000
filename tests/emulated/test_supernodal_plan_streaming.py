"""Plans whose factors do not fit: buffers that segments of fronts share, and what a solve gets about them."""

import numpy as np
import pytest

from gpusplu import gallery
from support.front_plans import block_view, pieces, plan_of
from support.small_matrices import canonical

PARAMETERS = {"ordering": "nd", "warp_rows": 8, "block_rows": 16, "large_tile": 16}


@pytest.fixture(scope="module", params=[False, True], ids=["lu", "cholesky"])
def cholesky(request):
    return request.param


@pytest.fixture(scope="module")
def matrix():
    return canonical(gallery.poisson(30, 6, 5))


@pytest.fixture(scope="module")
def whole(matrix, cholesky):
    return plan_of(matrix, cholesky, **PARAMETERS)


def scalars(plan):
    return plan.factor_size + plan.block_size


@pytest.fixture(scope="module")
def least(matrix, cholesky):
    return plan_of(matrix, cholesky, memory_bytes=8, **PARAMETERS)


@pytest.fixture(scope="module")
def plan_with(matrix, cholesky, whole, least):
    """The plan for this share of what lies between the least memory and all that it takes."""

    def make(share):
        limit = 8 * int(scalars(least) + share * (scalars(whole) - scalars(least)))
        made = plan_of(matrix, cholesky, memory_bytes=limit, **PARAMETERS)
        assert 8 * scalars(made) <= limit
        return made

    return make


@pytest.fixture(scope="module", params=[0, 0.1, 0.3])
def plan(request, plan_with):
    made = plan_with(request.param)
    assert made.streamed > 2
    return made


def segment_of(plan):
    return np.searchsorted(plan.segment_ptr, np.arange(plan.nf), side="right") - 1


def test_numbers_do_not_depend_on_the_limit(plan, whole):
    for name in ("first", "width", "rows", "phase", "entry_source", "entry_place", "gather_source", "place"):
        np.testing.assert_array_equal(getattr(plan, name), getattr(whole, name))
    assert sum(plan.segment_size) == whole.factor_size
    items, same = plan.items.copy(), whole.items.copy()
    items[:, 0] = same[:, 0] = 0  # offsets of blocks
    np.testing.assert_array_equal(items, same)


def test_every_segment_is_one_range(plan):
    segment, end = segment_of(plan), np.zeros(len(plan.segment_size), np.int64)
    for f in range(plan.nf):
        begin = plan.segment_place[segment[f]]
        for at, rows, columns in pieces(plan, f).values():
            assert begin <= at and at + rows * columns <= begin + plan.segment_size[segment[f]]
        assert plan.factor_offset[f] == begin + end[segment[f]]  # one front after another
        end[segment[f]] += sum(r * c for _, r, c in pieces(plan, f).values()) + 3 & ~3
    np.testing.assert_array_equal(end, plan.segment_size)
    assert (plan.segment_place >= 0).all()
    assert (plan.segment_place + plan.segment_size).max() <= plan.factor_size


def test_what_stays_shares_with_nobody(plan):
    assert plan.host_size == plan.segment_size[: plan.streamed].sum()
    taken = np.zeros(plan.factor_size, int)
    for s in range(plan.streamed, len(plan.segment_size)):
        taken[plan.segment_place[s] :][: plan.segment_size[s]] += 1
    for s in range(plan.streamed):
        taken[plan.segment_place[s] :][: plan.segment_size[s]] |= 2
    assert set(np.unique(taken)) <= {0, 1, 2}


def test_neighbours_do_not_meet_where_memory_allows(plan_with):
    roomy = 0
    for share in (0, 0.1, 0.2, 0.3):
        plan = plan_with(share)
        begin, size = plan.segment_place[: plan.streamed], plan.segment_size[: plan.streamed]
        room = size[:-1] + size[1:] <= (begin + size).max()
        apart = (begin[:-1] + size[:-1] <= begin[1:]) | (begin[1:] + size[1:] <= begin[:-1])
        np.testing.assert_array_equal(apart, room)
        roomy += room.sum()
    assert roomy > 0


def test_blocks_live_until_their_parent_has_them(plan):
    blocks, segment = np.zeros(plan.block_size, int), segment_of(plan)
    last_use = np.where(plan.parent >= 0, segment[plan.parent], segment)
    for s in range(len(plan.segment_ptr) - 1):
        for f in range(plan.segment_ptr[s], plan.segment_ptr[s + 1]):
            block_view(plan, blocks, f)[:] += 1
        assert blocks.max(initial=0) <= 1
        for f in np.flatnonzero(last_use == s):
            block_view(plan, blocks, f)[:] = 0


def test_time_and_host_memory_are_predicted(plan_with, whole):
    """Less memory takes longer, but no less than what has to be copied."""
    before = whole
    for share in (0.3, 0.1, 0):
        plan = plan_with(share)
        assert plan.host_size >= before.host_size
        assert plan.factor_seconds + plan.solve_seconds > before.factor_seconds + before.solve_seconds
        assert plan.factor_seconds > 8 * plan.host_size / 55e9
        held = plan.segment_size[max(plan.streamed - 2, 0) : plan.streamed].sum()  # where a solve turns round
        assert plan.solve_seconds > 8 * (2 * plan.host_size - held) / 55e9
        before = plan


def test_the_least(least, whole, matrix, cholesky):
    """If that is too much, the least that there is is what the plan asks for."""
    assert least.factor_size == least.segment_size.max() and least.streamed == len(least.segment_size)
    assert scalars(least) < scalars(whole) / 2
    enough = plan_of(matrix, cholesky, memory_bytes=8 * scalars(least), **PARAMETERS)
    assert scalars(enough) <= scalars(least)


def test_no_large_front_nothing_to_cut():
    """Fronts that a block holds are walked through by one launch, so a tree of them is one segment."""
    plan = plan_of(gallery.poisson(20, 20), memory_bytes=8)
    assert (plan.phase < 3).all() and len(plan.segment_ptr) == 2
