"""Plan of the GPU engine: what every plan must hold, entry by entry."""

import numpy as np
import pytest
import scipy.sparse as sp

from gpusplu import _core, gallery
from gpusplu.cuda.layout import constant, struct
from gpusplu.engines.supernodal.plan import SHARED
from support.front_plans import PARAMETERS, block_view, pieces, plan_of
from support.small_matrices import canonical

THREADS = ("WARP_SIZE", "SMALL_FRONT_THREADS", "BLOCK_FRONT_THREADS")
GROUPS = [*(constant(SHARED, name) // constant(SHARED, "ITEM_ENTRIES") for name in THREADS), 0]


def star(n=400, leaves=3):
    """A dense core with many small fronts that hang on few of its columns: crowded columns."""
    rng = np.random.default_rng(0)
    core = 40
    A = sp.lil_array((n, n))
    A[:core, :core] = rng.random((core, core))
    for k in range(core, n):
        near = rng.integers(0, 5, leaves)
        A[k, near], A[near, k] = 1, 1
    return canonical(sp.csc_array(A) + sp.eye_array(n) * 50)


CASES = {
    "poisson": lambda: gallery.poisson(17, 12),
    "poisson3": lambda: gallery.poisson(9, 8, 7),
    "circuit": lambda: gallery.named("circuit:16x16"),
    "star": star,
}


@pytest.fixture(scope="module", params=[False, True], ids=["lu", "cholesky"])
def cholesky(request):
    return request.param


@pytest.fixture(scope="module", params=list(CASES))
def matrix(request, cholesky):
    A = CASES[request.param]()
    if cholesky and request.param in ("circuit", "star"):
        A = canonical(A + A.T + sp.eye_array(A.shape[0]) * 1e3)
    return A


@pytest.fixture(scope="module", params=list(PARAMETERS))
def plan(request, matrix, cholesky):
    return plan_of(matrix, cholesky, **PARAMETERS[request.param])


def below(plan, f):
    return plan.below[plan.below_ptr[f] : plan.below_ptr[f + 1]]


def places(plan, f):
    return plan.place[plan.below_ptr[f] : plan.below_ptr[f + 1]].astype(int)


def local_rows(plan, f):
    """Plan position of every local row of front f."""
    return np.concatenate([plan.first[f] + np.arange(plan.width[f]), below(plan, f)])


def test_tree_is_in_postorder(plan):
    n, nf = plan.n, plan.nf
    for perm in (plan.row_perm, plan.col_perm):
        np.testing.assert_array_equal(np.sort(perm), np.arange(n))
    np.testing.assert_array_equal(plan.first, np.cumsum(plan.width) - plan.width)
    assert plan.width.sum() == n and (plan.width > 0).all()
    np.testing.assert_array_equal(np.diff(plan.below_ptr), plan.rows - plan.width)
    size = np.ones(nf, int)
    for f in range(nf):
        if plan.parent[f] >= 0:
            assert plan.parent[f] > f
            size[plan.parent[f]] += size[f]
        children = plan.child[plan.child_ptr[f] : plan.child_ptr[f + 1]]
        assert (plan.parent[children] == f).all() and (np.diff(children) > 0).all()
        assert sum(size[children]) + 1 == size[f]
        assert all(f - size[f] < c for c in children)
    assert len(plan.child) == (plan.parent >= 0).sum()


def test_rows_lie_in_the_parent(plan):
    for f in range(plan.nf):
        rows = below(plan, f)
        assert (np.diff(rows) > 0).all()
        if plan.parent[f] < 0:
            assert not len(rows)
            continue
        assert rows[0] >= plan.first[plan.parent[f]]
        np.testing.assert_array_equal(local_rows(plan, plan.parent[f])[places(plan, f)], rows)


def test_every_entry_is_placed_once(plan, matrix, cholesky):
    A = matrix
    row_position, col_position = np.argsort(plan.row_perm), np.argsort(plan.col_perm)
    column_of = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    rows, cols = row_position[A.indices], col_position[column_of]
    wanted = np.flatnonzero(rows >= cols) if cholesky else np.arange(A.nnz)
    np.testing.assert_array_equal(np.sort(plan.entry_source), wanted)
    for f in range(plan.nf):
        entries = slice(plan.entry_ptr[f], plan.entry_ptr[f + 1])
        source, place = plan.entry_source[entries], plan.entry_place[entries]
        if plan.phase[f] < 3:
            np.testing.assert_array_equal(np.lexsort((source, cols[source])), np.arange(len(source)))
        local = local_rows(plan, f)
        np.testing.assert_array_equal(local[place & 0xFFFF], rows[source])
        np.testing.assert_array_equal(local[place >> 16], cols[source])
        assert (np.minimum(place & 0xFFFF, place >> 16) < plan.width[f]).all()
        if plan.entry_scale.size:
            scale = plan.row_scale[A.indices[source]] * plan.col_scale[column_of[source]]
            np.testing.assert_array_equal(plan.entry_scale[entries], scale)


def test_phases_are_closed_under_descendants(plan):
    kind = np.digitize(plan.rows, [plan.warp_rows, max(plan.small_rows, plan.warp_rows), plan.block_rows], right=True)
    phase, level, pending = kind.copy(), np.zeros(plan.nf, int), np.zeros(plan.nf, int)
    for f in range(plan.nf):
        children = plan.child[plan.child_ptr[f] : plan.child_ptr[f + 1]]
        phase[f] = max(phase[f], phase[children].max(initial=0))
        same = children[phase[children] == phase[f]]
        level[f], pending[f] = level[same].max(initial=-1) + 1, len(same)
    np.testing.assert_array_equal(plan.phase, phase)
    np.testing.assert_array_equal(plan.level, level)
    records = plan.front_records
    np.testing.assert_array_equal(records["pending"], pending)
    parent = plan.parent
    climbs = (parent >= 0) & (phase[parent] == phase)
    later = (parent >= 0) & ~climbs
    np.testing.assert_array_equal(records["climb"], np.where(climbs, parent, np.where(later, -2 - parent, -1)))
    segment = np.searchsorted(plan.segment_ptr, np.arange(plan.nf), side="right") - 1
    small_parent = (parent >= 0) & (phase[parent] < 3)
    np.testing.assert_array_equal(segment[small_parent], segment[parent[small_parent]])
    tasks = plan.large_tasks.view(struct("shared/fronts.hpp", "LargeTask"))["front"]  # their fronts
    done = np.zeros(plan.nf, bool)
    for launch in plan.launches:
        work = slice(launch["begin"], launch["begin"] + launch["count"])
        (s,) = set(segment[tasks[work] if launch["phase"] == 3 else plan.start[work]])
        mine = (phase == launch["phase"]) & (segment == s)
        if launch["phase"] == 3:
            np.testing.assert_array_equal(np.unique(tasks[work]), np.flatnonzero(mine))
        else:
            np.testing.assert_array_equal(np.sort(plan.start[work]), np.flatnonzero(mine & (level == 0)))
            assert launch["scalars"] == max(
                _core.front_ld(r["rows"]) * (r["rows"] + r["partial_count"]) for r in records[mine]
            )
        assert launch["rows"] == records["rows"][mine].max() and launch["width"] == records["width"][mine].max()
        for f in np.flatnonzero(mine):
            children = plan.child[plan.child_ptr[f] : plan.child_ptr[f + 1]]
            assert (done[children] | mine[children]).all()
        done |= mine
    assert done.all()


def test_arenas_are_disjoint(plan):
    factor, blocks = np.zeros(plan.factor_size, int), np.zeros(plan.block_size, int)
    segment = np.searchsorted(plan.segment_ptr, np.arange(plan.nf), side="right") - 1
    last_use = np.where(plan.parent >= 0, segment[plan.parent], segment)
    for s in range(len(plan.segment_ptr) - 1):
        for f in range(plan.segment_ptr[s], plan.segment_ptr[s + 1]):
            assert plan.factor_offset[f] % 4 == 0 and plan.block_offset[f] % 4 == 0
            for at, rows, columns in pieces(plan, f).values():
                factor[at : at + rows * columns] += 1
                assert plan.phase[f] < 3 or at % 2 == 0
            block_view(plan, blocks, f)[:] += 1
        assert blocks.max(initial=0) <= 1
        for f in np.flatnonzero(last_use == s):
            block_view(plan, blocks, f)[:] = 0
    assert factor.max(initial=0) <= 1 and not blocks.any()


def test_items_cover_the_childrens_blocks(plan, cholesky):
    """Every entry of a child's block is added once, at the right place, and no column by two groups."""
    records = plan.front_records
    for f in range(plan.nf):
        record, phase = records[f], plan.phase[f]
        children = plan.child[plan.child_ptr[f] : plan.child_ptr[f + 1]]
        assert record["children"] == len(children)
        if phase == 3 or not len(children):
            assert record["partial_count"] == 0
            continue
        R = int(plan.rows[f])
        wanted = {}
        for c in children:
            H, place = int(plan.rows[c] - plan.width[c]), places(plan, c)
            for j in range(H):
                for i in range(j if cholesky else 0, H):
                    wanted[int(plan.block_offset[c]) + i + j * H] = (place[i], place[j])
        partial = plan.partial[record["partial_begin"] :][: record["partial_count"]]
        home = np.concatenate([np.arange(R), partial])
        owner_of = {}
        owner_ptr = plan.owner_ptr[record["owner_begin"] :][: GROUPS[phase] + 1]
        assert (np.diff(owner_ptr) >= 0).all()
        for group in range(GROUPS[phase]):
            for x, y, z, w in plan.items[owner_ptr[group] : owner_ptr[group + 1]]:
                count, column = int(y >> 16), int(y & 0xFFFF)
                assert 1 <= count <= 8 and owner_of.setdefault(column, group) == group
                rows = np.array([z, w], np.int32).view(np.uint8)
                for q in range(count):
                    assert wanted.pop(int(record["block_base"]) + int(x) + q) == (rows[q], home[column])
        assert not wanted


def test_gathers_take_every_contribution_once(plan):
    taken = []
    for f in range(plan.nf):
        begin, rows = int(plan.below_ptr[f] + plan.first[f]), local_rows(plan, f)
        for i, row in enumerate(rows):
            sources = plan.gather_source[plan.gather_ptr[begin + i] : plan.gather_ptr[begin + i + 1]]
            assert (np.diff(sources) > 0).all()
            assert (plan.below[sources] == row).all()
            owner = np.searchsorted(plan.below_ptr, sources, side="right") - 1
            assert (plan.parent[owner] == f).all()
            taken.extend(sources)
    np.testing.assert_array_equal(np.sort(taken), np.arange(len(plan.below)))
    assert len(plan.gather_ptr) == plan.rows.sum() + 1


def test_crowded_columns_are_cut():
    plan = plan_of(star(), warp_rows=2, small_rows=0)
    assert len(plan.partial)
    record = plan.front_records[np.argmax(plan.front_records["partial_count"])]
    load = np.diff(plan.owner_ptr[record["owner_begin"] :][: GROUPS[2] + 1])
    assert load.max() <= max(16, 2 * load.mean())


@pytest.mark.parametrize("cholesky", [False, True])
def test_segments_keep_to_a_limit(cholesky):
    A = gallery.poisson(12, 12, 12)
    parameters = {"warp_rows": 8, "block_rows": 16, "large_tile": 16}
    whole = plan_of(A, cholesky, **parameters)
    assert len(whole.segment_ptr) == 2
    limit = 8 * whole.block_size * 7 // 10
    plan = plan_of(A, cholesky, block_bytes=limit, **parameters)
    assert len(plan.segment_ptr) > 2 and 8 * plan.block_size <= limit
    np.testing.assert_array_equal(plan.factor_offset, whole.factor_offset)


def test_full_device_merges_siblings():
    """With few multiprocessors fronts fill the device: fewer, larger ones in phases 0-2, and the large ones stay."""
    A = gallery.poisson(160, 160)
    few, many = plan_of(A, multiprocessors=2), plan_of(A, multiprocessors=1000)
    assert few.nf < 0.8 * many.nf
    np.testing.assert_array_equal(few.rows[few.phase == 3], many.rows[many.phase == 3])
    assert few.factor_size < 1.4 * many.factor_size


@pytest.mark.parametrize("case", ["poisson:300x250", "circuit:16x16"])
def test_threads_do_not_matter(case, threads):
    A, plans = gallery.named(case), []
    for count in (1, 2, 5):
        threads(count)
        plans.append(plan_of(A))
    for other in plans[1:]:
        for name in dir(_core.Plan):
            if isinstance(array := getattr(plans[0], name), np.ndarray):
                np.testing.assert_array_equal(array, getattr(other, name), err_msg=name)
