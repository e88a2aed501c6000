"""Fronts dealt to devices: each once, children before parents, within memory, and as fast as the devices are."""

from itertools import pairwise

import numpy as np
import pytest

from gpusplu import gallery
from gpusplu.engines.supernodal.front_mapping import Fronts, Link, map_fronts, segments_of
from gpusplu.engines.supernodal.shared_plan import share_plan
from gpusplu.engines.supernodal.tiles import Tiles
from support.front_plans import plan_of, random_deal

CASES = {
    "poisson": (gallery.poisson(60, 60), True),
    "poisson3": (gallery.poisson(18, 18, 18), True),
    "elasticity": (gallery.elasticity(10, 10, 10), True),
    "lu": (gallery.named("rlc:30x30"), False),
}
AT_ONCE = Link(1e30, 0.0, 6e-6)  # copies that cost nothing


@pytest.fixture(scope="module", params=CASES)
def plan(request):
    A, cholesky = CASES[request.param]
    return plan_of(A, cholesky, multiprocessors=4, block_rows=30)


def check(plan, dealt, devices, block_bytes=1 << 40):
    """What holds of any deal, and of the plan that is made of it."""
    fronts = Fronts(plan)
    ranges = segments_of(fronts, dealt, block_bytes)
    seen = np.zeros(plan.nf, bool)
    for begin, end, _ in ranges:
        assert not seen[begin:end].any()
        assert all(seen[c] or c >= begin for f in range(begin, end) for c in fronts.children(f))
        seen[begin:end] = True
    assert seen.all()
    shared = share_plan(plan, dealt, devices, block_bytes)
    itemsize = np.dtype(plan.scalar).itemsize
    for edge in shared.edges:
        assert shared.block_entries[edge.child] * itemsize <= fronts.block_bytes[edge.child]
    for edge in shared.edges:
        end = shared.received[edge.child] + shared.block_entries[edge.child]
        assert end <= shared.block_sizes[shared.device_of[edge.target]]
    assert shared.factor_sizes.sum() == plan.factor_size
    return shared


@pytest.mark.parametrize("devices", [1, 2, 3, 8])
def test_what_the_search_finds(plan, devices):
    dealt = map_fronts(plan, [1.0] * devices, link=AT_ONCE)
    shared = check(plan, dealt, devices)
    assert dealt.seconds <= dealt.single_seconds * (1 + 1e-12)
    sent = sum(shared.block_entries[edge.child] for edge in shared.edges) * np.dtype(plan.scalar).itemsize
    assert sent <= dealt.traffic <= sent + 64 * len(shared.edges)
    for turns in ([t for t in dealt.turns if t.device == k] for k in range(devices)):
        assert all(a.end <= b.start + 1e-15 for a, b in pairwise(turns))


@pytest.mark.parametrize("seed", range(4))
def test_any_deal_is_a_plan(plan, seed):
    dealt = random_deal(plan, 3, 12, seed)
    shared = check(plan, dealt, 3, block_bytes=[1, 1 << 14, 1 << 40, 1 << 40][seed])
    for part in shared.parts:
        assert len({shared.device_of[segment] for segment in part}) == 1
    assert sorted(segment for part in shared.parts for segment in part) == list(range(len(shared.device_of)))


def test_two_are_faster_and_share_the_work():
    plan = plan_of(gallery.poisson(150, 150), True, multiprocessors=1, block_rows=30)
    dealt = map_fronts(plan, [1.0, 1.0], link=AT_ONCE)
    assert dealt.seconds < 0.7 * dealt.single_seconds
    busy = dealt.busy(2)
    assert min(busy) > 0.5 * max(busy)


def test_the_faster_device_gets_more():
    plan = plan_of(gallery.poisson(150, 150), True, multiprocessors=1, block_rows=30)
    dealt = map_fronts(plan, [1.0, 3.0], link=AT_ONCE)
    work = [sum(t.branch.seconds for t in dealt.turns if t.device == k) for k in range(2)]
    assert work[1] > 1.5 * work[0]
    assert dealt.seconds < map_fronts(plan, [1.0, 1.0], link=AT_ONCE).seconds


def test_others_begin_when_they_have_the_values():
    plan = plan_of(gallery.poisson(150, 150), True, multiprocessors=1, block_rows=30)
    alone = map_fronts(plan, [1.0, 1.0], link=AT_ONCE).single_seconds
    whole = alone * AT_ONCE.rate  # bytes that arrive in as long as one device takes for all
    dealt = map_fronts(plan, [1.0, 1.0], link=AT_ONCE, values=int(0.2 * whole))
    assert min(turn.start for turn in dealt.turns if turn.device == 0) == 0
    assert 0.2 * alone * (1 - 1e-9) <= min(turn.start for turn in dealt.turns if turn.device == 1) < alone
    dealt = map_fronts(plan, [1.0, 1.0], link=AT_ONCE, values=int(2 * whole))
    assert {turn.device for turn in dealt.turns} == {0}


def test_memory_decides_where_there_is_little():
    plan = plan_of(gallery.poisson(60, 60), True, multiprocessors=4, block_rows=30)
    total = Fronts(plan).factor_sum[-1]
    dealt = map_fronts(plan, [1.0, 1.0], [total, 0], AT_ONCE)
    assert {turn.device for turn in dealt.turns} == {0}
    dealt = map_fronts(plan, [1.0, 1.0], [int(0.7 * total)] * 2, Link(1.0, 1.0, 0.0))  # however dear copies are
    shared = share_plan(plan, dealt, 2, 1 << 40)
    assert max(shared.factor_sizes) < 0.8 * plan.factor_size


def test_what_is_no_segment():
    plan = plan_of(gallery.poisson(20, 20), True, block_rows=30)
    small = np.flatnonzero((plan.phase < 3) & (plan.parent >= 0) & (plan.phase[plan.parent] < 3))[0]
    ptr, two = np.array([0, small + 1, plan.nf], np.int32), np.array([0, 1], np.int32)
    with pytest.raises(ValueError, match="not large is in another segment"):
        plan.with_segments(ptr, two, two, 2)
    with pytest.raises(ValueError, match="cover all fronts"):
        plan.with_segments(ptr[:2], two[:1], two[:1], 1)
    with pytest.raises(ValueError, match="no such device"):
        plan.with_segments(ptr[[0, 2]], two[:1], two[1:], 1)


def test_tiles_have_all_rows_once():
    for width, rows, chunk, speeds in (
        (1000, 1000, 3, [1.0, 1.0]),
        (700, 5000, 2, [1.0, 2.0, 1.0]),
        (10, 200, 4, [1.0]),
    ):
        tiles = Tiles(width, rows, 64, chunk, speeds, 1)
        assert [each.begin for each in tiles.ranges] == [0, *(each.end for each in tiles.ranges[:-1])]
        assert tiles.ranges[-1].end == rows
    tiles = Tiles(700, 5000, 64, 1, [1.0, 2.0, 1.0], 2)
    assert 1.7 < np.mean(tiles.owner == 1) / np.mean(tiles.owner == 0) < 2.4
    row, col = np.indices((tiles.count, tiles.count)).reshape(2, -1)
    stage, owner = tiles.stages(row, col)
    assert (stage.min(), stage.max()) == (-1, tiles.chunks)
    work = np.bincount(owner[stage == tiles.chunks])
    assert 1.7 < work[1] / work[0] < 2.4


def test_large_fronts_at_the_top_are_shared():
    plan = plan_of(gallery.poisson(24, 24, 24), True, multiprocessors=1, block_rows=30)
    apart, shared = (map_fronts(plan, [1.0] * 4, link=AT_ONCE, share=share) for share in (False, True))
    assert shared.shared
    assert shared.seconds < 0.9 * apart.seconds
    assert min(shared.busy(4)) > 0.7 * max(shared.busy(4))
    assert not map_fronts(plan, [1.0] * 4, link=Link(1e6, 1.0, 0.0)).shared
    root = max(shared.shared)
    tiles = share_plan(plan, shared, 4, 1 << 40).tiles[root]
    assert len(set(tiles.owner.tolist())) == 4


def test_sharing_gives_way_to_memory():
    plan = plan_of(gallery.poisson(24, 24, 24), True, multiprocessors=1, block_rows=30)
    total = int(Fronts(plan).factor_sum[-1])
    assert map_fronts(plan, [1.0, 1.0], [10 * total] * 2, AT_ONCE).shared
    assert not map_fronts(plan, [1.0, 1.0], [int(0.7 * total)] * 2, AT_ONCE).shared
