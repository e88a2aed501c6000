"""Pickles that are damaged are refused in one line; what is checked is what the core relies on.

tests/faults flips bits of whole pickles; here each check is seen to refuse.
"""

import pickle

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import _core
from support.analyses import analyze
from support.processes import run
from support.small_matrices import random_matrix

FIELDS = (
    *("method", "n", "nnz", "cholesky", "ldlt", "row_perm", "col_perm", "row_scale", "col_scale"),
    *("pivot_order", "partner", "keeps_diagonal", "block_ptr", "parent"),
    *("col_count", "super_ptr", "super_parent", "row_ptr", "row_ind", "rel_ind"),
    *("n_interface", "ordering", "lnz", "flops"),
    *("structural_rank", "column_levels", "super_levels", "critical_path", "seconds", "costs"),
)


def parts_of(A):
    """Arguments of the function that makes an analysis of its pickled parts, by name, and that function."""
    restore, parts = gs.analyze(A).__reduce__()
    return dict(zip(("pattern", "dtype", "kind", "options", "choice", "core", "seconds"), parts, strict=True)), restore


def pattern_of(A):
    return parts_of(A)[0]["pattern"]


def analysis(method):
    A = random_matrix()
    pattern = pattern_of(A)
    return analyze(pattern.ptr, pattern.ind, pattern.gather(A.data), method=method), pattern


def restored(state):
    copy = _core.Symbolic.__new__(_core.Symbolic)
    copy.__setstate__(state)
    return copy


def with_entry(array, k, value):
    array = np.array(array)
    array[k] = value
    return array


DAMAGED = {
    "method": ("method", lambda x: "frond"),
    "n": ("n", lambda x: x + 1),
    "negative n": ("n", lambda x: -1),
    "huge n": ("n", lambda x: 2**31 - 1),
    "nnz": ("nnz", lambda x: x + 1),
    "type": ("nnz", lambda x: "many"),
    "row_perm": ("row_perm", lambda x: with_entry(x, 0, x[1])),
    "col_perm": ("col_perm", lambda x: with_entry(x, 0, 1 << 30)),
    "short col_perm": ("col_perm", lambda x: x[1:]),
    "row_scale": ("row_scale", lambda x: np.full(60, 0.3)),
    "col_scale": ("col_scale", lambda x: np.full(60, np.nan)),
    "negative scale": ("col_scale", lambda x: np.full(60, -2.0)),
    "scale out of range": ("row_scale", lambda x: np.full(60, 2.0**1023)),
    "short scale": ("row_scale", lambda x: np.ones(3)),
    "pivot_order": ("pivot_order", lambda x: x),
    "partner": ("partner", lambda x: x),
    "block_ptr": ("block_ptr", lambda x: with_entry(x, -1, 61)),
    "array type": ("block_ptr", lambda x: x.astype(float)),
    "parent": ("parent", lambda x: with_entry(x, 3, 2)),
    "col_count": ("col_count", lambda x: with_entry(x, 3, 99)),
    "super_ptr": ("super_ptr", lambda x: with_entry(x, 1, x[2])),
    "super_parent": ("super_parent", lambda x: with_entry(x, 0, 1 << 20)),
    "tree": ("super_parent", lambda x: with_entry(x, 0, x.size - 1)),
    "row_ptr": ("row_ptr", lambda x: with_entry(x, 1, -5)),
    "row_ind": ("row_ind", lambda x: with_entry(x, 0, x[1])),
    "row_ind outside": ("row_ind", lambda x: with_entry(x, 0, 1 << 30)),
    "rel_ind": ("rel_ind", lambda x: with_entry(x, 0, x[0] + 1)),
    "rel_ind outside": ("rel_ind", lambda x: with_entry(x, 0, -1)),
    "short rel_ind": ("rel_ind", lambda x: x[1:]),
    "n_interface": ("n_interface", lambda x: 1),
    "negative n_interface": ("n_interface", lambda x: -1),
    "ordering": ("ordering", lambda x: "ame"),
    "lnz": ("lnz", lambda x: -1),
    "flops": ("flops", lambda x: np.nan),
    "rank": ("structural_rank", lambda x: 59),
    "cholesky": ("cholesky", lambda x: True),
    "costs": ("costs", lambda x: with_entry(x, 0, -1.0)),
    "short costs": ("costs", lambda x: x[1:]),
}


@pytest.mark.parametrize("method", ["front", "column"])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name == "huge n")) for name in DAMAGED]
)
def test_damaged_analyses_are_refused(name, method):
    symbolic, pattern = analysis(method)
    field, damage = DAMAGED[name]
    state = list(symbolic.__getstate__())
    place = FIELDS.index(field)
    absent = isinstance(state[place], np.ndarray) and not state[place].size  # fronts in an analysis for columns
    state[place] = np.zeros(3, state[place].dtype) if absent else damage(state[place])
    with pytest.raises(ValueError, match="a pickled analysis is damaged") as refused:
        _core.validate(restored(tuple(state)), pattern.core)
    assert len(str(refused.value).splitlines()) == 1


def test_states_and_patterns_that_do_not_fit():
    symbolic, pattern = analysis("front")
    state = symbolic.__getstate__()
    for name, value in zip(FIELDS, state, strict=True):
        np.testing.assert_array_equal(value, getattr(symbolic, name))
    with pytest.raises(ValueError, match="another number of fields"):
        restored(state[:-1])
    _core.validate(symbolic, pattern.core)
    for other in (random_matrix(59), random_matrix(seed=1)):
        with pytest.raises(ValueError, match=r"of another matrix|has no place in its structure"):
            _core.validate(symbolic, pattern_of(other).core)
    order = np.arange(60)[::-1]
    lu = gs.splu(random_matrix(), ordering=order)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(lu)).perm_c, lu.perm_c)


CANONICAL = {
    "n": (0, lambda x: x + 1),
    "negative n": (0, lambda x: -1),
    "nvalues": (1, lambda x: 3),
    "identity": (2, lambda x: not x),
    "ptr": (3, lambda x: with_entry(x, 3, 1 << 40)),
    "ind": (4, lambda x: with_entry(x, 0, 1 << 30)),
    "order": (4, lambda x: with_entry(x, 1, x[0])),
    "source": (5, lambda x: with_entry(x, 0, 1 << 40) if x.size else np.arange(3)),
    "negative source": (5, lambda x: with_entry(x, 0, -(1 << 40)) if x.size else np.arange(3)),
    "source_ptr": (6, lambda x: np.arange(3)),
}


@pytest.mark.parametrize("format", ["csc", "csr"])
@pytest.mark.parametrize("name", CANONICAL)
def test_damaged_patterns_are_refused(name, format):
    place, damage = CANONICAL[name]
    core = pattern_of(random_matrix().asformat(format)).core
    state = list(core.__getstate__())
    state[place] = damage(state[place])
    copy = _core.Canonical.__new__(_core.Canonical)
    with pytest.raises(ValueError, match="a pickled pattern is damaged"):
        copy.__setstate__(tuple(state))


def test_parts_that_do_not_belong_together():
    known, restore_symbolic = parts_of(random_matrix())
    core, options, choice = known["core"], known["options"], known["choice"]
    for changes in (
        {"pattern": pattern_of(random_matrix(59))},
        {"pattern": core, "core": known["pattern"]},
        {"dtype": np.dtype("i4")},
        {"kind": "cholesky"},
        {"choice": choice._replace(engine="cpv")},
        {"choice": choice._replace(engine="supernodal" if core.method == "column" else "glu")},
        {"choice": choice._replace(request=choice.request._replace(refactorizations="5"))},
        {"choice": choice._replace(request=None)},
        {"seconds": {"analyze": "long"}},
        {"options": type(options)(pivoting="atuo")},
        {"options": type(options)(refine="nevre")},
    ):
        with pytest.raises(ValueError, match=r"damaged|is not one of"):
            restore_symbolic(**{**known, **changes})
    restore_factor, (_, symbolic, values) = gs.splu(random_matrix()).__reduce__()
    for kind, canonical in (
        (gs.CholeskyFactor, values),
        (dict, values),
        (gs.LUFactor, values[1:]),
        (gs.LUFactor, values.astype(int)),
        (gs.LUFactor, values * np.nan),
    ):
        with pytest.raises(ValueError, match=r"damaged|must be finite"):
            restore_factor(kind, symbolic, canonical)


@pytest.mark.parametrize("make", [gs.cholesky, gs.ldlt])
@pytest.mark.parametrize("dtype", "dD")
def test_damaged_values_that_are_not_hermitian(make, dtype):
    """The CPU engine reads one triangle, and the real part of the diagonal."""
    A = gs.gallery.poisson(5, 5).astype(dtype)
    restore, parts = make(A).__reduce__()
    places = [1, 0] if dtype == "D" else [1]
    for place in places:
        values = next(part for part in parts if isinstance(part, np.ndarray)).copy()
        values[place] += 0.5 if place else 0.5j
        damaged = [values if isinstance(part, np.ndarray) else part for part in parts]
        with pytest.raises(gs.NotHermitianError):
            restore(*damaged)


def test_analyses_factor_in_a_new_process():
    """Nothing else has imported the classes of factors and batches there."""
    A = random_matrix()
    program = f"""
        import pickle, sys
        symbolic, values = pickle.loads(bytes.fromhex(sys.argv[1])), {A.data.tolist()}
        print(symbolic.factor(values), symbolic.factor_batch([values] * 2))
    """
    assert "BatchedLUFactor" in run(program, pickle.dumps(gs.analyze(A)).hex())
