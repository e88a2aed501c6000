"""Plan of the GPU engine: a factorization and a solve done with nothing but its arrays."""

import numpy as np
import pytest

from gpusplu import _core, gallery
from gpusplu.cost.calibration import for_core
from gpusplu.engines.supernodal.plan import Limits, make_best_plan, make_plan, predict
from support.analyses import analyze, analyze_fronts
from support.front_plans import Pattern, plan_of
from support.small_matrices import dtypes, random_matrix


def test_records():
    plan = plan_of(gallery.poisson(13, 11))
    records = plan.front_records
    assert len(records) == plan.nf
    for name in ("width", "rows", "level"):
        np.testing.assert_array_equal(records[name], getattr(plan, name))
    np.testing.assert_array_equal(records["factor"], plan.factor_offset)
    np.testing.assert_array_equal(records["below"], plan.below_ptr[:-1])
    np.testing.assert_array_equal(records["entry_count"], np.diff(plan.entry_ptr))


@pytest.mark.parametrize("dtype", dtypes("fD"))
def test_predict_is_what_the_plan_predicts(dtype):
    A = gallery.poisson(40, 40).astype(dtype)
    pattern = Pattern(A)
    symbolic = analyze(pattern.ptr, pattern.ind, A.data, method="front")
    old = Limits(shared_memory_bytes=65536, multiprocessors=40, arch=75)
    for limits in (Limits(), old):
        plan = make_plan(symbolic, pattern, dtype, limits)
        assert predict(symbolic, dtype, limits) == (plan.factor_seconds, plan.solve_seconds)
        assert plan.factor_seconds == pytest.approx(plan.phase_seconds.sum()) and plan.solve_seconds > 0
        assert _core.front_ld(plan.block_rows) * plan.block_rows * A.dtype.itemsize < limits.shared_memory_bytes
    assert predict(symbolic, dtype, old) >= predict(symbolic, dtype)


def test_best_of_several():
    A = gallery.poisson(40, 40)
    pattern = Pattern(A)
    symbolics = [analyze_fronts(pattern.ptr, pattern.ind, A.data, ordering=name)[0] for name in ("natural", "nd")]
    seconds = [sum(predict(symbolic, "d")) for symbolic in symbolics]
    assert seconds[1] < seconds[0]
    for order in (symbolics, symbolics[::-1], symbolics[:1], [symbolics[1], symbolics[1]]):
        best, plan, _ = make_best_plan(order, pattern, "d")
        assert best is min(order, key=lambda symbolic: seconds[symbolics.index(symbolic)])
        alone = make_plan(best, pattern, "d")
        for name in ("col_perm", "width", "items", "entry_place", "launches"):
            np.testing.assert_array_equal(getattr(plan, name), getattr(alone, name))
        assert (plan.factor_seconds, plan.solve_seconds) == (alone.factor_seconds, alone.solve_seconds)
    with pytest.raises(ValueError, match="no symbolic"):
        _core.make_best_plan([], pattern.ptr, pattern.ind, for_core())


@pytest.mark.parametrize(("size", "dear"), [(116, True), (120, False)])
def test_a_few_large_fronts_are_made_only_where_they_pay(size, dear):
    """The plan is the one of the two costs of a large front for which clearly less is predicted."""
    A = gallery.poisson(size, size)
    plan, cheap_one, dear_one = (
        plan_of(A, cholesky=True, **cost) for cost in ({}, {"large_cost": 8}, {"large_cost": 32})
    )
    seconds = [p.factor_seconds + p.solve_seconds for p in (plan, cheap_one, dear_one)]
    assert (seconds[2] < 0.95 * seconds[1]) == dear
    assert seconds[0] == seconds[2 if dear else 1]
    assert np.array_equal(plan.width, (dear_one if dear else cheap_one).width)


def test_rejects():
    A = random_matrix()
    pattern = Pattern(A)
    symbolic = analyze(pattern.ptr, pattern.ind, A.data, method="column")
    with pytest.raises(ValueError, match="method 'front'"):
        make_plan(symbolic, pattern, A.dtype)
    symbolic = analyze(pattern.ptr, pattern.ind, A.data, method="front")
    with pytest.raises(ValueError, match="scalar must be"):
        _core.make_plan(symbolic, pattern.ptr, pattern.ind, for_core(), scalar="q")
    empty = A.copy()
    empty.data[empty.indptr[3] : empty.indptr[4]] = 0
    empty.eliminate_zeros()
    gap = Pattern(empty)
    with pytest.raises(ValueError, match="structurally singular"):
        make_plan(analyze(gap.ptr, gap.ind, empty.data, method="front"), gap, A.dtype)
    with pytest.raises(TypeError, match="'rows'"):
        make_plan(symbolic, pattern, A.dtype, rows=3)
