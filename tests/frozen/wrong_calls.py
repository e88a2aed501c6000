"""Calls with wrong and unusual arguments, by public names only."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import gpusplu as gs

from .matrices import canonical, definite, symmetric, unsymmetric

Call = Callable[[], Any]
A = canonical(np.array([[4.0, 1, 0, 0, 2], [1, 5, 1, 0, 0], [0, 2, 6, 1, 0], [0, 0, 1, 7, 1], [1, 0, 0, 3, 8]]))
S = definite(5, 1)
K = canonical(np.array([[0.0, 1, 0, 0, 0], [1, 0, 2, 0, 0], [0, 2, -3, 1, 0], [0, 0, 1, 4, 1], [0, 0, 0, 1, -5]]))
C = canonical(A + 1j * sp.tril(A))
H = canonical(K + 1j * sp.tril(K, -1) - 1j * sp.triu(K, 1))
SINGULAR = canonical(np.array([[1.0, 2, 0], [2, 4, 0], [0, 0, 1]]))
WITHOUT_COLUMN = sp.csc_array((np.array([1.0, 2, 3]), np.array([0, 1, 2]), np.array([0, 1, 3, 3])), shape=(3, 3))
b, b2 = np.arange(5.0), np.arange(10.0).reshape(5, 2)
NAN, INF = np.nan, np.inf


def with_value(M: Any, value: Any, place: int = 3) -> Any:
    M = M.copy()
    M.data[place] = value
    return M


def with_arrays(**arrays: Any) -> sp.csc_array:
    """A with other index arrays, which SciPy does not check."""
    M = A.copy()
    for name, array in arrays.items():
        setattr(M, name, np.asarray(array))
    return M


def changed(array: np.ndarray, place: int, value: int) -> np.ndarray:
    array = array.copy()
    array[place] = value
    return array


def moved_entry() -> sp.csc_array:
    """As many entries as A has, one of them elsewhere."""
    M = A.toarray()
    M[0, 3], M[0, 4] = M[0, 4], 0
    return canonical(M)


def duplicated(M: Any) -> sp.coo_array:
    """Every entry in two parts, in another order."""
    M = sp.coo_array(M)
    order = np.random.default_rng(0).permutation(2 * M.nnz)
    rows, columns = (np.tile(c, 2)[order] for c in M.coords)
    return sp.coo_array((np.tile(M.data / 2, 2)[order], (rows, columns)), shape=M.shape)


def unsorted_csc(M: Any) -> sp.csc_array:
    order = np.concatenate([np.arange(e - 1, s - 1, -1) for s, e in zip(M.indptr[:-1], M.indptr[1:], strict=True)])
    return sp.csc_array((M.data[order], M.indices[order], M.indptr), shape=M.shape)


def long_indices(M: Any) -> sp.csc_array:
    return with_arrays(indices=M.indices.astype("q"), indptr=M.indptr.astype("q"))


MATRICES: dict[str, Any] = {
    "rectangular": A[:, :4],
    "tall": sp.csc_array(np.eye(5, 3)),
    "of 1 dimension": np.ones(3),
    "of 3 dimensions": np.ones((2, 2, 2)),
    "scalar": 3.0,
    "None": None,
    "text": "matrix",
    "list": [[4.0, 1], [1, 3]],
    "dense": A.toarray(),
    "of integers": A.astype(int),
    "of booleans": A.astype(bool),
    "of longdouble": A.astype("g"),
    "of clongdouble": A.astype("G"),
    "of half": np.eye(3, dtype="e"),
    "of objects": A.toarray().astype(object),
    "csr": A.tocsr(),
    "coo": A.tocoo(),
    "dia": A.todia(),
    "bsr": A.tobsr(),
    "lil": A.tolil(),
    "dok": A.todok(),
    "csc_matrix": sp.csc_matrix(A),
    "duplicates": duplicated(A),
    "unsorted": unsorted_csc(A),
    "int64 indices": long_indices(A),
    "other byte order": sp.csc_array((A.data.astype(">f8"), A.indices, A.indptr), shape=A.shape),
    "NaN": with_value(A, NAN),
    "Inf": with_value(A, INF),
    "minus Inf and NaN": with_value(with_value(A, -INF, 7), NAN, 9),
    "complex NaN": with_value(C, complex(0, NAN)),
    "NaN in a csr": with_value(A.tocsr(), NAN),
    "NaN in duplicates": with_value(duplicated(A), NAN),
    "rectangular with NaN": with_value(A[:, :4], NAN),
    "singular": SINGULAR,
    "of zeros": 0 * A,
    "without entries": sp.csc_array((4, 4)),
    "an empty column": WITHOUT_COLUMN,
    "singular with NaN": with_value(SINGULAR, NAN, 1),
    "0 x 0": sp.csc_array((0, 0)),
    "1 x 1": sp.csc_array([[2.0]]),
    "1 x 1 of zero": sp.csc_array([[0.0]]),
    "1 x 1, negative": sp.csc_array([[-2.0]]),
    "1 x 1, complex": sp.csc_array([[2.0 + 1j]]),
    "symmetric": S,
    "indefinite": K,
    "lower triangle": sp.csc_array(sp.tril(S)),
    "upper triangle": sp.csc_array(sp.triu(S)),
    "Hermitian": H,
    "complex symmetric": canonical(C + C.T),
    "complex diagonal": canonical(H + 1j * sp.eye_array(5)),
    "unsymmetric": A,
    "nearly symmetric": with_value(S, S.data[3] * (1 + 1e-12)),
    "float32": S.astype("f"),
    "complex64": H.astype("F"),
    "overflow in float32": with_value(S.astype("f"), np.float32(3e38)),
    "row index out of range": with_arrays(indices=changed(A.indices, 2, 7)),
    "negative row index": with_arrays(indices=changed(A.indices, 2, -1)),
    "indptr that falls": with_arrays(indptr=changed(A.indptr, 2, 9)),
    "indptr beyond the entries": with_arrays(indptr=changed(A.indptr, 5, 40)),
    "indptr that begins at 1": with_arrays(indptr=changed(A.indptr, 0, 1)),
    "indices too short": with_arrays(indices=A.indices[:-2]),
    "data too short": with_arrays(data=A.data[:-2]),
    "index out of range and NaN": with_value(with_arrays(indices=changed(A.indices, 2, 7)), NAN),
}


def spsolved(M: Any) -> Any:
    return gs.spsolve(M, np.ones(np.shape(M)[0]) if len(np.shape(M)) else b)


def batch_of(make: Callable[..., Any], M: Any) -> Any:
    return make(M, np.stack([M.data, 2 * M.data]) if sp.issparse(M) and M.format in ("csc", "csr") else np.ones((2, 4)))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "splu": gs.splu,
    "spsolve": spsolved,
    "cholesky": gs.cholesky,
    "ldlt": gs.ldlt,
}
#: Those that share most of their way with these get every third matrix.
RELATED: dict[str, Callable[[Any], Any]] = {
    "factorized": lambda M: gs.factorized(M)(np.ones(np.shape(M)[0])),
    "analyze": gs.analyze,
    "analyze for cholesky": partial(gs.analyze, cholesky=True),
    "analyze for ldlt": partial(gs.analyze, ldlt=True),
    "explain": lambda M: type(gs.explain(M)),
    "splu_batch": partial(batch_of, gs.splu_batch),
    "cholesky_batch": partial(batch_of, gs.cholesky_batch),
    "analyze for a Schur complement": partial(gs.analyze, schur=[0]),
}

OPTIONS: dict[str, dict[str, Any]] = {
    "engine unknown": {"engine": "fast"},
    "engine None": {"engine": None},
    **{f"engine {name}": {"engine": name} for name in ("cpu", "glu", "sflu", "crisscross", "supernodal")},
    "device 0": {"device": 0},
    "device -1": {"device": -1},
    "device cpu": {"device": "cpu"},
    "device all": {"device": "all"},
    "device gpu": {"device": "gpu"},
    "devices": {"device": [0, 1]},
    "no devices": {"device": []},
    "device cpu, engine sflu": {"device": "cpu", "engine": "sflu"},
    "devices, engine cpu": {"device": [0, 1], "engine": "cpu"},
    "devices, engine glu": {"device": [0, 1], "engine": "glu"},
    "device 0, engine cpu": {"device": 0, "engine": "cpu"},
    "device_memory 0": {"device_memory": 0},
    "device_memory negative": {"device_memory": -5},
    "device_memory text": {"device_memory": "1G"},
    "expected_refactors negative": {"expected_refactors": -1},
    "expected_refactors infinite": {"expected_refactors": INF},
    "expected_refactors NaN": {"expected_refactors": NAN},
    "expected_refactors True": {"expected_refactors": True},
    "expected_refactors text": {"expected_refactors": "many"},
    "expected_refactors 0": {"expected_refactors": 0},
    "ordering unknown": {"ordering": "colamd"},
    "ordering None": {"ordering": None},
    "ordering too short": {"ordering": [0, 1, 2]},
    "ordering with a repetition": {"ordering": [0, 1, 2, 2, 4]},
    "ordering out of range": {"ordering": [0, 1, 2, 3, 5]},
    "ordering negative": {"ordering": [-1, 0, 1, 2, 3]},
    "ordering of floats": {"ordering": np.arange(5.0)},
    "ordering of 2 dimensions": {"ordering": np.arange(5)[None]},
    "ordering given": {"ordering": [4, 3, 2, 1, 0]},
    "ordering natural": {"ordering": "natural"},
    "refine unknown": {"refine": "sometimes"},
    "refine always": {"refine": "always"},
    "precision unknown": {"precision": "half"},
    "precision mixed": {"precision": "mixed"},
    "precision mixed, refine never": {"precision": "mixed", "refine": "never"},
    "deterministic": {"deterministic": True},
    "verbose 7": {"verbose": 7},
    "progress text": {"progress": "bar"},
    "unknown keyword": {"tolerance": 1e-3},
    "engine and ordering unknown": {"engine": "fast", "ordering": "colamd"},
    "ordering and refine unknown": {"ordering": "colamd", "refine": "sometimes"},
    "refine and precision unknown": {"refine": "sometimes", "precision": "half"},
}
LU_OPTIONS: dict[str, dict[str, Any]] = {
    "pivoting unknown": {"pivoting": "full"},
    "pivoting static": {"pivoting": "static"},
    "pivoting partial": {"pivoting": "partial"},
    "pivoting partial, engine sflu": {"pivoting": "partial", "engine": "sflu"},
    "permc_spec unknown": {"permc_spec": "FOO"},
    "permc_spec natural": {"permc_spec": "NATURAL"},
    "permc_spec natural, ordering amd": {"permc_spec": "NATURAL", "ordering": "amd"},
    "permc_spec natural, ordering natural": {"permc_spec": "NATURAL", "ordering": "natural"},
    "permc_spec and ordering unknown": {"permc_spec": "FOO", "ordering": "foo"},
    "diag_pivot_thresh text": {"diag_pivot_thresh": "x"},
    "diag_pivot_thresh negative": {"diag_pivot_thresh": -1.0},
    "diag_pivot_thresh NaN": {"diag_pivot_thresh": NAN},
    "relax text": {"relax": "a"},
    "panel_size float": {"panel_size": 1.5},
    "options unknown": {"options": {"Foo": 1}},
    "options no dict": {"options": 3},
    "options ColPerm": {"options": {"ColPerm": "NATURAL"}},
    "options ColPerm unknown": {"options": {"ColPerm": "FOO"}},
    "options ColPerm and permc_spec": {"options": {"ColPerm": "NATURAL"}, "permc_spec": "COLAMD"},
    "options symbolic unknown": {"options": {"symbolic": "gpu"}},
    "options symbolic device": {"options": {"symbolic": "device"}},
    "options SymmetricMode": {"options": {"SymmetricMode": True}},
    "options IterRefine unknown": {"options": {"IterRefine": "X"}},
    "options DiagPivotThresh text": {"options": {"DiagPivotThresh": "a"}},
    "options and pivoting unknown": {"options": {"Foo": 1}, "pivoting": "full"},
}
#: Several errors in one call: which of them is raised.
ORDERS: dict[str, Call] = {
    "rectangular, engine unknown": lambda: gs.splu(A[:, :4], engine="fast"),
    "rectangular, ordering unknown": lambda: gs.splu(A[:, :4], ordering="foo"),
    "rectangular, NaN, ordering unknown": lambda: gs.splu(with_value(A[:, :4], NAN), ordering="foo"),
    "rectangular csr, ordering unknown": lambda: gs.splu(A.tocsr()[:, :4], ordering="foo"),
    "NaN, ordering unknown": lambda: gs.splu(with_value(A, NAN), ordering="foo"),
    "NaN, engine sflu": lambda: gs.splu(with_value(A, NAN), engine="sflu"),
    "singular, engine sflu": lambda: gs.splu(SINGULAR, engine="sflu"),
    "longdouble, rectangular": lambda: gs.splu(A[:, :4].astype("g")),
    "longdouble, ordering unknown": lambda: gs.splu(A.astype("g"), ordering="foo"),
    "text, engine unknown": lambda: gs.splu("matrix", engine="fast"),
    "index out of range, ordering unknown": lambda: gs.splu(MATRICES["row index out of range"], ordering="foo"),
    "index out of range, engine unknown": lambda: gs.splu(MATRICES["row index out of range"], engine="fast"),
    "rectangular, right-hand side too short": lambda: gs.spsolve(A[:, :4], np.ones(3)),
    "NaN, right-hand side too short": lambda: gs.spsolve(with_value(A, NAN), np.ones(3)),
    "singular, right-hand side too short": lambda: gs.spsolve(SINGULAR, np.ones(2)),
    "csr, permc_spec unknown": lambda: gs.spsolve(A.tocsr(), b, permc_spec="FOO"),
    "unsymmetric with NaN, cholesky": lambda: gs.cholesky(with_value(A, NAN)),
    "unsymmetric, cholesky, ordering unknown": lambda: gs.cholesky(A, ordering="foo"),
    "unsymmetric with NaN, ldlt": lambda: gs.ldlt(with_value(A, NAN)),
    "indefinite, cholesky, engine glu": lambda: gs.cholesky(K, engine="glu"),
    "indefinite, ldlt, engine glu": lambda: gs.ldlt(K, engine="glu"),
    "indefinite, ldlt, engine crisscross": lambda: gs.ldlt(K, engine="crisscross"),
    "rectangular, ldlt, hermitian": lambda: gs.ldlt(A[:, :4], hermitian=True),
    "analyze both": lambda: gs.analyze(A, cholesky=True, ldlt=True),
    "analyze both, engine unknown": lambda: gs.analyze(A, cholesky=True, ldlt=True, engine="fast"),
    "explain both": lambda: gs.explain(A, cholesky=True, ldlt=True),
}

RIGHT: dict[str, tuple[Any, ...]] = {
    "list": ([1.0, 2, 3, 4, 5],),
    "None": (None,),
    "scalar": (1.0,),
    "sparse": (sp.csc_array(b2),),
    "0 dimensions": (np.array(1.0),),
    "3 dimensions": (np.ones((5, 2, 2)),),
    "too short": (np.ones(4),),
    "too few rows": (np.ones((4, 2)),),
    "a row": (np.ones((1, 5)),),
    "empty": (np.ones(0),),
    "no columns": (np.ones((5, 0)),),
    "one column": (b[:, None],),
    "columns, C": (b2,),
    "columns, F": (np.asfortranarray(b2),),
    "strided": (np.arange(10.0)[::2],),
    "read-only": (np.broadcast_to(1.0, 5),),
    "integers": (np.arange(5),),
    "int8": (np.arange(5, dtype="b"),),
    "booleans": (np.ones(5, bool),),
    "float32": (b.astype("f"),),
    "half": (b.astype("e"),),
    "longdouble": (b.astype("g"),),
    "complex": (b + 1j,),
    "complex64": ((b + 1j).astype("F"),),
    "complex columns": (b2 + 1j,),
    "objects": (b.astype(object),),
    "text": (np.array(list("abcde")),),
    "other byte order": (b.astype(">f8"),),
    "matrix": (np.matrix(b2),),
    "masked": (np.ma.array(b, mask=[0, 0, 1, 0, 0]),),
    "NaN": (np.full(5, NAN),),
    "trans t": (b, "t"),
    "trans T": (b, "T"),
    "trans unknown": (b, "X"),
    "trans None": (b, None),
    "trans bytes": (b, b"T"),
    "trans 1": (b, 1),
    "too short, trans unknown": (np.ones(4), "X"),
    "list, trans unknown": ([1.0], "X"),
}
KEYWORDS: dict[str, dict[str, Any]] = {
    "check later": {"check": "later"},
    "check unknown": {"check": "never"},
    "check None": {"check": None},
    "out": {"out": np.empty(5)},
    "later, out": {"check": "later", "out": np.empty(5)},
    "later, out of another shape": {"check": "later", "out": np.empty(4)},
    "later, out of another type": {"check": "later", "out": np.empty(5, "f")},
    "later, out of integers": {"check": "later", "out": np.empty(5, int)},
    "later, out a list": {"check": "later", "out": [0.0] * 5},
}

VALUES: dict[str, Any] = {
    "too short": A.data[:-1],
    "too long": np.append(A.data, 1.0),
    "scalar": 1.0,
    "None": None,
    "text": "values",
    "list": A.data.tolist(),
    "2 dimensions": A.data[None],
    "a column": A.data[:, None],
    "integers": A.data.astype(int),
    "float32": A.data.astype("f"),
    "longdouble": A.data.astype("g"),
    "complex": A.data + 1j,
    "objects": A.data.astype(object),
    "strided": np.repeat(A.data, 2)[::2],
    "NaN": with_value(A, NAN).data,
    "Inf": with_value(A, INF, 0).data,
    "too short with NaN": with_value(A, NAN).data[:-1],
    "zeros": 0 * A.data,
    "matrix": 2 * A,
    "csr": (2 * A).tocsr(),
    "coo": (2 * A).tocoo(),
    "dense": A.toarray(),
    "another pattern": moved_entry(),
    "fewer entries": canonical(sp.tril(A)),
    "more entries": canonical(A + sp.eye_array(5, k=4)),
    "another shape": S[:4, :4],
    "rectangular": A[:, :4],
    "matrix with NaN": with_value(A, NAN),
    "another pattern with NaN": with_value(moved_entry(), NAN),
    "matrix of longdouble": A.astype("g"),
    "tiny": A.data * 1e-300,
    "huge": A.data * 1e300,
}


def refactored(make: Callable[[Any], Any], M: Any, values: Any) -> Any:
    """What refactor says, and whether the factor solves for the right values."""
    factor = make(M)
    factor.refactor(values)
    return factor.solve(np.ones(5))


def kept(make: Callable[[Any], Any], M: Any, values: Any) -> Any:
    """A factor whose values were refused solves with those before."""
    factor = make(M)
    before = factor.solve(np.ones(5))
    try:
        factor.refactor(values)
    except (ValueError, RuntimeError, np.linalg.LinAlgError) as error:
        return (
            type(error).__mro__[1].__name__,
            bool((factor.solve(np.ones(5)) == before).all()),
            factor.stats.n_refactor,
        )


def refused_by_both(values: Any) -> Any:
    return gs.splu(A).refactor_solve(values, np.ones(4), "X")


def batch(make: Any = gs.splu_batch, M: Any = A, count: int = 3, **options: Any) -> Any:
    return make(M, np.stack([(1 + k) * M.data for k in range(count)]), **options)


SPOILT = np.stack([A.data, with_value(A, NAN).data, 0 * A.data])
BATCH: dict[str, Call] = {
    "values of 1 dimension": lambda: gs.splu_batch(A, A.data),
    "values of 3 dimensions": lambda: gs.splu_batch(A, A.data[None, None]),
    "values too short": lambda: gs.splu_batch(A, np.ones((2, 3))),
    "no systems": lambda: gs.splu_batch(A, np.ones((0, A.nnz))),
    "values None": lambda: gs.splu_batch(A, None),
    "values of longdouble": lambda: gs.splu_batch(A, np.ones((2, A.nnz), "g")),
    "values of integers": lambda: batch().solve(b),
    "complex values of a real matrix": lambda: gs.splu_batch(A, np.stack([A.data, A.data + 1j])),
    "errors unknown": lambda: batch(errors="ignore"),
    "errors and engine unknown": lambda: batch(errors="ignore", engine="fast"),
    "engine glu": lambda: batch(engine="glu"),
    "precision": lambda: batch(precision="mixed"),
    "flagged": lambda: gs.splu_batch(A, SPOILT).status.tolist(),
    "flagged, solved": lambda: gs.splu_batch(A, SPOILT).solve(b),
    "flagged, determinants": lambda: gs.splu_batch(A, SPOILT).slogdet(),
    "raised": lambda: gs.splu_batch(A, SPOILT, errors="raise"),
    "raised at refactor": lambda: batch(errors="raise").refactor(SPOILT),
    "raised for one": lambda: gs.splu_batch(A, SPOILT)[1],
    "raised for another": lambda: gs.splu_batch(A, SPOILT)[2],
    "no such system": lambda: batch()[3],
    "last system": lambda: batch()[-1],
    "system of a name": lambda: batch()["first"],
    "not definite": lambda: gs.cholesky_batch(S, np.stack([S.data, -S.data])).status.tolist(),
    "not definite, raised": lambda: gs.cholesky_batch(S, np.stack([S.data, -S.data]), errors="raise"),
    "unsymmetric": lambda: batch(gs.cholesky_batch, A),
    "right-hand side too short": lambda: batch().solve(np.ones(4)),
    "right-hand sides of another number": lambda: batch().solve(np.ones((2, 5))),
    "right-hand side a list": lambda: batch().solve([1.0] * 5),
    "right-hand side of 4 dimensions": lambda: batch().solve(np.ones((3, 5, 2, 2))),
    "trans unknown": lambda: batch().solve(b, "X"),
    "complex right-hand side": lambda: batch().solve(b + 1j),
    "no columns": lambda: batch().solve(np.ones((3, 5, 0))),
    "columns": lambda: batch().solve(np.ones((3, 5, 2))),
    "check unknown": lambda: batch().solve(b, check="never"),
    "check later": lambda: batch().solve(b, check="later"),
    "check": lambda: batch().check(),
    "out": lambda: batch().solve(b, out=np.empty((3, 5))),
    "refactor too few": lambda: batch().refactor(np.ones((2, A.nnz))),
    "refactor of complex": lambda: batch().refactor(np.ones((3, A.nnz), "D")),
    "refactor of 1 dimension": lambda: batch().refactor(A.data),
    "refactor_solve of another number": lambda: batch().refactor_solve(np.ones((2, A.nnz)), b),
    "stats": lambda: sorted(batch().stats),
    "length, shape": lambda: (len(batch()), batch().shape),
    "Symbolic.factor": lambda: gs.analyze(A).factor(np.stack([A.data, A.data])),
    "Symbolic.factor, errors unknown": lambda: gs.analyze(A).factor(np.stack([A.data, A.data]), errors="x"),
    "Symbolic.factor of ldlt": lambda: gs.analyze(K, ldlt=True).factor(np.stack([K.data, K.data])),
    "Symbolic.factor, mixed": lambda: gs.analyze(A, precision="mixed").factor(np.stack([A.data, A.data])),
    "singular analysis": lambda: gs.splu_batch(0 * A, np.stack([A.data, 0 * A.data])).status.tolist(),
}


def stale(act: Callable[[Any], Any]) -> Any:
    """An update of a factor that was refactored since."""
    lu = gs.splu(A)
    updated = lu.updated(b)
    lu.refactor(2 * A.data)
    return act(updated)


MORE: dict[str, Call] = {
    "updated, singular": lambda: gs.splu(sp.eye_array(2, format="csc")).updated([1.0, 0.0], [-1.0, 0.0]),
    "updated, shapes": lambda: gs.splu(A).updated(np.ones((4, 2))),
    "updated, columns": lambda: gs.splu(A).updated(np.ones((5, 2)), np.ones((5, 3))),
    "updated, 3 dimensions": lambda: gs.splu(A).updated(np.ones((5, 2, 2))),
    "updated, complex": lambda: gs.splu(A.astype("f")).updated(np.ones(5)),
    "updated, NaN": lambda: gs.splu(A).updated(np.full(5, NAN)),
    "updated, no columns": lambda: gs.splu(A).updated(np.ones((5, 0))).solve(b),
    "updated, solved": lambda: gs.splu(A).updated(b).solve(b2, "H"),
    "updated, repr": lambda: gs.splu(A).updated(b),
    "updated, right-hand side too short": lambda: gs.splu(A).updated(b).solve(np.ones(4)),
    "updated, refactored": lambda: stale(lambda updated: updated.solve(b)),
    "updated, refactored, determinant": lambda: stale(lambda updated: updated.slogdet()),
    "update": lambda: gs.cholesky(S).update(np.ones(5)),
    "update, shape": lambda: gs.cholesky(S).update(np.ones(4)),
    "update, NaN": lambda: gs.cholesky(S).update(np.full(5, NAN)),
    "update, sparse NaN": lambda: gs.cholesky(S).update(sp.csc_array(np.full((5, 1), NAN))),
    "update, complex": lambda: gs.cholesky(S).update(1j * np.ones(5)),
    "update, precision": lambda: gs.cholesky(S.astype("f")).update(np.ones(5)),
    "update, widened, values": lambda: widened(S.data),
    "update, widened, too many values": lambda: widened(np.ones(25)),
    "downdate, not definite": lambda: gs.cholesky(S).downdate(100 * np.ones(5)),
    "downdate, inside": lambda: gs.cholesky(S).downdate(sp.csc_array(100 * np.eye(5, 1))),
    "downdate, kept": lambda: kept_by_downdate(),
    "update of a singular column": lambda: gs.cholesky(S).update(np.zeros(5)),
    "Schur, index out of range": lambda: gs.analyze(A, schur=[7]),
    "Schur, negative": lambda: gs.analyze(A, schur=[-1]),
    "Schur, twice": lambda: gs.analyze(A, schur=[1, 1]),
    "Schur, floats": lambda: gs.analyze(A, schur=[0.5]),
    "Schur, mask too short": lambda: gs.analyze(A, schur=[True, False]),
    "Schur, 2 dimensions": lambda: gs.analyze(A, schur=[[0, 1]]),
    "Schur, nothing": lambda: gs.analyze(A, schur=[]).factor(A.data).schur,
    "Schur, everything": lambda: gs.analyze(A, schur=range(5)).factor(A.data).schur,
    "Schur, mask": lambda: gs.analyze(A, schur=np.arange(5) < 2).factor(A.data).schur,
    "Schur, values too short": lambda: gs.analyze(A, schur=[0]).factor(A.data[:-1]),
    "Schur, NaN": lambda: gs.analyze(A, schur=[0]).factor(with_value(A, NAN).data),
    "Schur, another pattern": lambda: gs.analyze(A, schur=[0]).factor(moved_entry()),
    "Schur, singular interior": lambda: gs.analyze(SINGULAR, schur=[2]).factor(SINGULAR.data),
    "Schur, not definite": lambda: gs.analyze(S, cholesky=True, schur=[2]).factor(-S.data),
    "Schur, expand first": lambda: gs.analyze(A, schur=[0]).factor(A.data).expand(np.ones(1)),
    "Schur, expand of another shape": lambda: gs.analyze(A, schur=[0]).factor(A.data).expand(np.ones(2), b),
    "Schur, condense a list": lambda: gs.analyze(A, schur=[0]).factor(A.data).condense([1.0]),
    "Schur, condense too short": lambda: gs.analyze(A, schur=[0]).factor(A.data).condense(np.ones(4)),
    "Schur, complex expand": lambda: gs.analyze(A, schur=[0]).factor(A.data).expand(np.ones(1) + 1j, b),
    "Schur, refactor": lambda: gs.analyze(A, schur=[0]).factor(A.data).refactor(A.data[:-1]),
    "Schur, repr": lambda: gs.analyze(A, schur=[0]),
    "selected_inverse": lambda: gs.splu(A).selected_inverse(),
    "selected_inverse on LU": lambda: gs.splu(A).selected_inverse("LU"),
    "selected_inverse, unknown": lambda: gs.splu(A).selected_inverse("all"),
    "inverse_diagonal": lambda: gs.splu(A).inverse_diagonal(),
    "trace_inverse": lambda: gs.splu(A).trace_inverse(A),
    "trace_inverse, shape": lambda: gs.splu(A).trace_inverse(S[:4, :4]),
    "trace_inverse, dense": lambda: gs.splu(A).trace_inverse(A.toarray()),
    "trace_inverse, text": lambda: gs.splu(A).trace_inverse("B"),
    "solve_L": lambda: gs.splu(A).solve_L(b),
    "solve_L, too short": lambda: gs.splu(A).solve_L(np.ones(4)),
    "solve_U, list": lambda: gs.splu(A).solve_U([1.0]),
    "solve_U, trans unknown": lambda: gs.splu(A).solve_U(b, "X"),
    "inertia": lambda: gs.ldlt(K).inertia(),
    "inertia, complex symmetric": lambda: gs.ldlt(canonical(C + C.T)).inertia(),
    "inertia, singular nearly": lambda: gs.ldlt(canonical(np.array([[1.0, 1], [1, 1 + 2.0**-52]]))).inertia(),
    "ldlt, hermitian of complex symmetric": lambda: gs.ldlt(canonical(C + C.T), hermitian=True),
    "ldlt, not hermitian of Hermitian": lambda: gs.ldlt(H, hermitian=False),
    "ldlt, refactor with unsymmetric values": lambda: gs.ldlt(K).refactor(np.arange(1.0, K.nnz + 1)),
    "cholesky, refactor with unsymmetric values": lambda: gs.cholesky(S).refactor(np.arange(1.0, S.nnz + 1)),
    "cholesky, refactor with an unsymmetric matrix": lambda: gs.cholesky(S).refactor(with_value(S, 9.0)),
    "ldlt, refactor with an unsymmetric matrix": lambda: gs.ldlt(K).refactor(with_value(K, 9.0)),
    "ldlt, inertia of unsymmetric values": lambda: inertia_of(np.arange(1.0, K.nnz + 1)),
    "Symbolic, Cholesky of unsymmetric values": lambda: gs.analyze(S, cholesky=True).factor(np.arange(1.0, S.nnz + 1)),
    "natural order": lambda: gs.splu(A, permc_spec="NATURAL").perm_c.tolist(),
    "natural ordering": lambda: gs.splu(A, ordering="natural").perm_c.tolist(),
    "natural ordering, rows": lambda: gs.splu(A, ordering="natural").perm_r.tolist(),
    "natural ordering of Cholesky": lambda: gs.cholesky(S, ordering="natural").perm.tolist(),
    "order of the caller": lambda: gs.splu(A, ordering=[4, 3, 2, 1, 0]).perm_c.tolist(),
    "order of the caller, Cholesky": lambda: gs.cholesky(S, ordering=[4, 3, 2, 1, 0]).perm.tolist(),
    "call of a Cholesky factor": lambda: gs.cholesky(S)(b),
    "call of an LU factor": lambda: gs.splu(A)(b),
    "logdet": lambda: gs.cholesky(S).logdet(),
    "logdet of LU": lambda: gs.splu(A).logdet(),
    "L is kept": lambda: (lambda lu: (lu.L is lu.L, lu.U is lu.U))(gs.splu(A)),
    "set an attribute": lambda: setattr(gs.splu(A), "shape", (2, 2)),
    "set a new attribute": lambda: setattr(gs.splu(A), "note", "mine"),
    "unknown attribute": lambda: gs.splu(A).perm,
    "unknown attribute of Symbolic": lambda: gs.analyze(A).rank,
    "unknown name of gpusplu": lambda: gs.lu,
    "unknown name of gpusplu.linalg": lambda: gs.linalg.lu,
    "name of SciPy in gpusplu.linalg": lambda: gs.linalg.norm(A),
    "Symbolic of a singular pattern": lambda: gs.analyze(WITHOUT_COLUMN),
    "Symbolic of a singular pattern, factor": lambda: gs.analyze(WITHOUT_COLUMN).factor(WITHOUT_COLUMN.data),
    "stats keys": lambda: ", ".join(sorted(gs.splu(A).stats)),
    "stats keys of Cholesky": lambda: ", ".join(sorted(gs.cholesky(S).stats)),
    "stats keys of ldlt": lambda: ", ".join(sorted(gs.ldlt(K).stats)),
    "stats keys, mixed": lambda: ", ".join(sorted(gs.splu(A, precision="mixed").stats)),
    "stats, unknown attribute": lambda: gs.splu(A).stats.speed,
    "stats, unknown key": lambda: gs.splu(A).stats["speed"],
    "backward_error": lambda: gs.splu(A).backward_error,
    "check without calls": lambda: gs.splu(A).check(),
    "cache_info": lambda: gs.cache_info(),
    "cache_limit, negative": lambda: gs.cache_limit(-1),
    "cache_limit, text": lambda: gs.cache_limit("x"),
    "factorization_count": lambda: type(gs.factorization_count()),
    "copies": lambda: pickle.loads(pickle.dumps(gs.splu(A))).solve(b),
    "copies of batches": lambda: pickle.loads(pickle.dumps(batch())).solve(b),
    "copies of Symbolic": lambda: pickle.loads(pickle.dumps(gs.analyze(A))),
    "enabled": lambda: with_enabled(lambda: type(sla.splu(A))),
    "enabled, wrong": lambda: with_enabled(lambda: sla.splu(A[:, :4])),
    "enabled, singular": lambda: with_enabled(lambda: sla.splu(SINGULAR)),
    "enabled, csr": lambda: with_enabled(lambda: sla.splu(A.tocsr())),
    "enabled, spsolve singular": lambda: with_enabled(lambda: sla.spsolve(SINGULAR, np.ones(3))),
    "enabled, umfpack": lambda: with_enabled(lambda: sla.spsolve(A, b, use_umfpack=True)),
    "enabled twice": lambda: with_enabled(lambda: with_enabled(lambda: type(sla.splu(A)))),
    "enabled, engine": lambda: with_enabled(lambda: sla.splu(A, engine="cpu")),
    "install twice": lambda: (gs.install(), gs.install(), gs.uninstall(), type(sla.splu(A))),
    "uninstall": lambda: gs.uninstall(),
    "gallery, unknown": lambda: gs.gallery.named("wave:3x3"),
    "gallery, sizes": lambda: gs.gallery.named("rlc:3"),
    "gallery, negative": lambda: gs.gallery.named("poisson:-3x3"),
    "gallery, zero": lambda: gs.gallery.poisson(0, 3),
    "gallery, float": lambda: gs.gallery.poisson(2.5, 3),
    "spsolve, sparse": lambda: gs.spsolve(A, sp.csc_array(b2)),
    "spsolve, sparse csr": lambda: gs.spsolve(A.tocsr(), sp.csr_array(b2)),
    "spsolve, sparse column": lambda: gs.spsolve(A, sp.csr_array(b[:, None])),
    "spsolve, sparse of another number of rows": lambda: gs.spsolve(A, sp.csc_array((4, 2))),
    "spsolve, singular, columns": lambda: gs.spsolve(SINGULAR, np.ones((3, 2))),
    "spsolve, singular, sparse": lambda: gs.spsolve(SINGULAR, sp.csc_array(np.eye(3))),
    "spsolve, use_umfpack": lambda: gs.spsolve(A, b, use_umfpack=False),
    "spsolve, engine": lambda: gs.spsolve(A, b, engine="cpu"),
    "spsolve, permc_spec unknown": lambda: gs.spsolve(A, b, permc_spec="FOO"),
    "verbose": lambda: gs.splu(A, verbose="loud"),
    "progress that raises": lambda: gs.splu(A, progress=lambda *a: 1 / 0),
    "plot": lambda: type(gs.splu(A).plot).__name__,
    "large": lambda: gs.splu(unsymmetric(60, 60)).solve(np.ones(60)),
    "large, ldlt": lambda: gs.ldlt(symmetric(80, 80, 0.0)).solve(np.ones(80)),
}


def widened(values: np.ndarray) -> Any:
    factor = gs.cholesky(S)
    factor.update(np.ones(5))
    factor.refactor(values)
    return factor.solve(b)


def kept_by_downdate() -> Any:
    factor = gs.cholesky(S)
    before = factor.solve(b)
    try:
        factor.downdate(100 * np.ones(5))
    except gs.NotPositiveDefiniteError as error:
        return error.column, bool(np.allclose(factor.solve(b), before))


def inertia_of(values: np.ndarray) -> Any:
    factor = gs.ldlt(K)
    factor.refactor(values)
    return factor.inertia()


def with_enabled(call: Call) -> Any:
    with gs.enabled():
        return call()


def all_calls() -> dict[str, Call]:
    calls: dict[str, Call] = {}
    for name, function in FUNCTIONS.items():
        calls |= {f"{name}: {what}": partial(function, M) for what, M in MATRICES.items()}
    for k, (name, function) in enumerate(RELATED.items()):
        calls |= {f"{name}: {what}": partial(function, M) for what, M in list(MATRICES.items())[k % 3 :: 3]}
    calls |= {f"splu with {what}": partial(gs.splu, A, **given) for what, given in (OPTIONS | LU_OPTIONS).items()}
    calls |= {f"cholesky with {what}": partial(gs.cholesky, S, **given) for what, given in list(OPTIONS.items())[::3]}
    calls |= {f"ldlt with {what}": partial(gs.ldlt, K, **given) for what, given in list(OPTIONS.items())[1::3]}
    calls |= {f"analyze with {what}": partial(gs.analyze, A, **given) for what, given in list(OPTIONS.items())[2::3]}
    calls |= {f"two things wrong: {what}": call for what, call in ORDERS.items()}
    for what, given in RIGHT.items():
        calls[f"solve of {what}"] = lambda given=given: gs.splu(A).solve(*given)
        if len(given) == 1:
            calls[f"spsolve with {what}"] = partial(gs.spsolve, A, *given)
    for what, given in list(RIGHT.items())[::4]:
        calls[f"solve in single precision of {what}"] = lambda given=given: gs.splu(A.astype("f")).solve(*given)
        calls[f"refactor_solve of {what}"] = lambda given=given: gs.splu(A).refactor_solve(A.data, *given)
    for what, keywords in KEYWORDS.items():
        calls[f"solve with {what}"] = lambda keywords=keywords: gs.splu(A).solve(b, **keywords)
        calls[f"refactor_solve with {what}"] = lambda keywords=keywords: gs.splu(A).refactor_solve(
            A.data, b, **keywords
        )
    calls["refactor later"] = lambda: gs.splu(A).refactor(A.data, check="later")
    calls["refactor, check unknown"] = lambda: gs.splu(A).refactor(A.data, check="never")
    for what, values in VALUES.items():
        calls[f"refactor with {what}"] = partial(refactored, gs.splu, A, values)
        calls[f"Symbolic.factor of {what}"] = lambda values=values: gs.analyze(A).factor(values)
    for what, values in list(VALUES.items())[14:19]:
        calls[f"kept before {what}"] = partial(kept, gs.splu, A, values)
    for what, scale in (("NaN", NAN), ("zeros", 0.0), ("negative", -1.0)):
        calls[f"Cholesky, kept before {what}"] = partial(kept, gs.cholesky, S, S.data * scale)
        calls[f"ldlt, kept before {what}"] = partial(kept, gs.ldlt, K, K.data * scale)
        calls[f"Cholesky, refactor with {what}"] = partial(refactored, gs.cholesky, S, S.data * scale)
    for what, values in list(VALUES.items())[::6]:
        calls[f"refactor_solve, right-hand side and trans wrong, values {what}"] = partial(refused_by_both, values)
    calls |= {f"batch, {what}": call for what, call in BATCH.items()}
    return calls | MORE


CALLS = all_calls()
