"""Arrays that are too short, of another shape or of another type are refused before anything is read past an end."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as scipy_linalg

import gpusplu as gs
from gpusplu import _core
from gpusplu.cost.calibration import for_core
from support.analyses import (
    analyze,
    analyze_columns,
    analyze_fronts,
)

N = 10
B = np.arange(N, dtype=float)


def tridiagonal(format="csc"):
    return sp.diags_array([np.ones(N - 1), 4 * np.ones(N), np.ones(N - 1)], offsets=[-1, 0, 1]).asformat(format)


SOLVES = {
    "splu": lambda A: gs.splu(A).solve(B),
    "with an ordering": lambda A: gs.splu(A, ordering="amd").solve(B),
    "analyze": lambda A: gs.analyze(A).factor(tridiagonal(A.format).data).solve(B),
    "cholesky": lambda A: gs.cholesky(A).solve(B),
}

MALFORMED = {
    "short data": ("data", lambda x: x[:2]),
    "short indices": ("indices", lambda x: x[:5]),
    "short indptr": ("indptr", lambda x: x[:5]),
    "data in two dimensions": ("data", lambda x: x.reshape(2, -1)),
    "data in none": ("data", lambda x: np.array(1.0)),
    "indices in two dimensions": ("indices", lambda x: x.reshape(2, -1)),
    "indptr in two dimensions": ("indptr", lambda x: x.reshape(1, -1)),
    "indices of floats": ("indices", lambda x: x + 0.5),
    "indptr of floats": ("indptr", lambda x: x.astype(float)),
    "indices of booleans": ("indices", lambda x: x.astype(bool)),
}


@pytest.mark.parametrize("solve", SOLVES)
@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("format", ["csc", "csr"])
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_malformed_matrices_are_refused(name, solve, format):
    attribute, change = MALFORMED[name]
    A = tridiagonal(format)
    setattr(A, attribute, change(getattr(A, attribute)))
    if format == "csc":  # SciPy converts the others first, some of them past the end of an array
        with pytest.raises(ValueError):  # noqa: PT011 the class is what is compared
            scipy_linalg.splu(A)
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        SOLVES[solve](A)
    assert len(str(refused.value).splitlines()) == 1


PTR, IND = np.array([0, 1, 2], np.int64), np.array([0, 1], np.int32)
DIAG, PERM, SHORT = np.array([0, 1], np.int64), np.array([0, 1], np.int32), np.ones(1)


def column_plan():
    return _core.make_column_plan(PTR, IND, PERM, PERM)


CORE_CALLS = {
    "costs": lambda: _core.Costs(np.ones(3)),
    "analyze": lambda: analyze(PTR, IND, SHORT),
    "analyze_fronts": lambda: analyze_fronts(PTR, IND, SHORT),
    "analyze_columns": lambda: analyze_columns(PTR, IND, SHORT),
    "analyze, perm": lambda: analyze(PTR, IND, np.ones(2), perm=PERM[:1]),
    "analyze, no pointers": lambda: analyze(PTR[:0], IND, SHORT),
    "analyze, ind": lambda: analyze(PTR, IND[:1], np.ones(2)),
    "symmetry_traits": lambda: _core.symmetry_traits(PTR, IND, SHORT),
    "rowwise_error": lambda: _core.rowwise_error(PTR, IND, SHORT, "N", np.ones(2), np.ones(2), np.ones(2)),
    "make_column_plan": lambda: _core.make_column_plan(PTR, IND, PERM, PERM, SHORT, SHORT),
    "make_column_plan, rows": lambda: _core.make_column_plan(PTR, IND, PERM, PERM, columns=(PTR, IND[:1], DIAG)),
    "groups": lambda: column_plan().groups(3, 1, 1, 1),
    "long_columns": lambda: column_plan().long_columns(np.array([7], np.int32), for_core()),
    "longest_trailing_column": lambda: column_plan().longest_trailing_column(DIAG[:1], 0, 1, 1),
    "count_trailing_terms": lambda: column_plan().count_trailing_terms(3),
    "trailing_terms": lambda: column_plan().trailing_terms(-1, 100, 1, 1, 8),
    "factor_matrix": lambda: _core.factor_matrix(
        None, _core.FactorSpec("lu", "csc", None), 2, PTR[:2], IND.astype(np.int64), np.ones(3), for_core(), False
    ),
    "canonical": lambda: _core.canonical("csr", 2, PTR[:2], IND.astype(np.int64)),
}


@pytest.mark.parametrize("name", CORE_CALLS)
def test_every_binding_checks_lengths(name):
    with pytest.raises(ValueError) as refused:  # noqa: PT011 all kinds of messages
        CORE_CALLS[name]()
    assert len(str(refused.value).splitlines()) == 1
