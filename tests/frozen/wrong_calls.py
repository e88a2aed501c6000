"""Calls with wrong and unusual arguments, by public names only: products of calls and arguments."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import gpusplu as gs

from .matrices import canonical, definite

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
    """A with other arrays, which SciPy does not check."""
    M = A.copy()
    for name, array in arrays.items():
        setattr(M, name, np.asarray(array))
    return M


def with_index(name: str, place: int, value: int) -> sp.csc_array:
    array = getattr(A, name).copy()
    array[place] = value
    return with_arrays(**{name: array})


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


DAMAGED = (("indices", 2, 7), ("indices", 2, -1), ("indptr", 2, 9), ("indptr", 5, 40), ("indptr", 0, 1))
MATRICES: dict[str, Any] = {
    **{f"{name}": A.asformat(name) for name in ("csc", "csr", "coo", "dia", "bsr", "lil", "dok", "array")},
    **{f"of type {char}": A.astype(char) for char in "?lfgFG"},
    **{f"of type {char}, dense": A.toarray().astype(char) for char in "eO"},
    **{f"entry {M}": sp.csc_array([[M]]) for M in (2.0, 0.0, -2.0, 2 + 1j)},
    **{f"{name}[{place}] = {value}": with_index(name, place, value) for name, place, value in DAMAGED},
    **{f"{name} too short": with_arrays(**{name: getattr(A, name)[:-2]}) for name in ("indices", "data")},
    **{f"with {value}": with_value(A, value) for value in (NAN, INF, -INF)},
    **{f"{form} with NaN": with_value(A.asformat(form), NAN) for form in ("csr", "coo")},
    **{f"{what}": M for what, M in (("text", "matrix"), ("None", None), ("scalar", 3.0), ("list", [[4.0, 1], [1, 3]]))},
    **{f"shape {M.shape}": M for M in (A[:, :4], sp.csc_array(np.eye(5, 3)), np.ones(3), np.ones((2, 2, 2)))},
    **{f"empty, {n}": sp.csc_array((n, n)) for n in (0, 4)},
    "csc_matrix": sp.csc_matrix(A),
    "duplicates": duplicated(A),
    "duplicates with NaN": with_value(duplicated(A), NAN),
    "unsorted": unsorted_csc(A),
    "int64 indices": with_arrays(indices=A.indices.astype("q"), indptr=A.indptr.astype("q")),
    "other byte order": with_arrays(data=A.data.astype(">f8")),
    "complex NaN": with_value(C, complex(0, NAN)),
    "rectangular with NaN": with_value(A[:, :4], NAN),
    "index out of range and NaN": with_value(with_index("indices", 2, 7), NAN),
    "singular": SINGULAR,
    "singular with NaN": with_value(SINGULAR, NAN, 1),
    "of zeros": 0 * A,
    "an empty column": WITHOUT_COLUMN,
    "symmetric": S,
    "nearly symmetric": with_value(S, S.data[3] * (1 + 1e-12)),
    "indefinite": K,
    "lower triangle": sp.csc_array(sp.tril(S)),
    "upper triangle": sp.csc_array(sp.triu(S)),
    "Hermitian": H,
    "complex symmetric": canonical(C + C.T),
    "complex diagonal": canonical(H + 1j * sp.eye_array(5)),
    "symmetric, float32": S.astype("f"),
    "Hermitian, complex64": H.astype("F"),
    "overflow in float32": with_value(S.astype("f"), np.float32(3e38)),
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
    "analyze for a Schur complement": partial(gs.analyze, schur=[0]),
    "explain": lambda M: type(gs.explain(M)),
    "splu_batch": partial(batch_of, gs.splu_batch),
    "cholesky_batch": partial(batch_of, gs.cholesky_batch),
}
ORDERINGS = ("colamd", None, [0, 1, 2], [0, 1, 2, 2, 4], [0, 1, 2, 3, 5], [-1, 0, 1, 2, 3], [4, 3, 2, 1, 0], "natural")
#: Values of an argument, of all functions that factor or analyze.
OPTIONS: dict[str, tuple[Any, ...]] = {
    "engine": ("fast", None, "cpu", "glu", "sflu", "crisscross", "supernodal"),
    "device": (0, -1, "cpu", "all", "gpu", [0, 1], []),
    "device_memory": (0, -5, "1G"),
    "expected_refactors": (-1, INF, NAN, True, "many", 0),
    "ordering": (*ORDERINGS, np.arange(5.0), np.arange(5)[None]),
    "refine": ("sometimes", "always"),
    "precision": ("half", "mixed"),
    "deterministic": (True,),
    "verbose": (7, "loud"),
    "progress": ("bar",),
    "tolerance": (1e-3,),
}
#: Of splu.
LU_OPTIONS: dict[str, tuple[Any, ...]] = {
    "pivoting": ("full", "static", "partial"),
    "permc_spec": ("FOO", "NATURAL"),
    "diag_pivot_thresh": ("x", -1.0, NAN),
    "relax": ("a",),
    "panel_size": (1.5,),
    "options": (
        *(3, {"Foo": 1}, {"symbolic": "gpu"}, {"symbolic": "device"}, {"SymmetricMode": True}, {"IterRefine": "X"}),
        *({"ColPerm": "NATURAL"}, {"ColPerm": "FOO"}, {"DiagPivotThresh": "a"}),
    ),
}
#: Arguments that contradict each other, or are wrong together.
TOGETHER: tuple[dict[str, Any], ...] = (
    {"device": "cpu", "engine": "sflu"},
    *({"device": [0, 1], "engine": engine} for engine in ("cpu", "glu")),
    {"device": 0, "engine": "cpu"},
    {"precision": "mixed", "refine": "never"},
    {"engine": "fast", "ordering": "colamd"},
    {"ordering": "colamd", "refine": "sometimes"},
    {"refine": "sometimes", "precision": "half"},
)
LU_TOGETHER: tuple[dict[str, Any], ...] = (
    {"pivoting": "partial", "engine": "sflu"},
    *({"permc_spec": "NATURAL", "ordering": ordering} for ordering in ("amd", "natural")),
    {"permc_spec": "FOO", "ordering": "foo"},
    {"options": {"ColPerm": "NATURAL"}, "permc_spec": "COLAMD"},
    {"options": {"Foo": 1}, "pivoting": "full"},
)

RIGHT: dict[str, Any] = {
    **{f"shape {shape}": np.ones(shape) for shape in ((), 4, (4, 2), (1, 5), 0, (5, 0), (5, 1), (5, 2), (5, 2, 2))},
    **{f"type {char}": b.astype(char) for char in "?blefgFDO"},
    **{f"columns of type {char}": b2.astype(char) for char in "fD"},
    **{f"full of {value}": np.full(5, value) for value in (NAN, "a")},
    "list": b.tolist(),
    "None": None,
    "scalar": 1.0,
    "sparse": sp.csc_array(b2),
    "matrix": np.matrix(b2),
    "columns, Fortran order": np.asfortranarray(b2),
    "strided": np.arange(10.0)[::2],
    "read-only": np.broadcast_to(1.0, 5),
    "other byte order": b.astype(">f8"),
    "masked": np.ma.array(b, mask=[0, 0, 1, 0, 0]),
}
DIRECTIONS = ("t", "T", "X", None, b"T", 1)
CHECKS = ("later", "never", None)
OUTS = {"": np.empty(5), " of another shape": np.empty(4), " of another type": np.empty(5, "f"), " a list": [0.0] * 5}

VALUES: dict[str, Any] = {
    **{f"type {char}": A.data.astype(char) for char in "lfgDO"},
    **{f"times {factor}": A.data * factor for factor in (0, NAN, INF, 1e-300, 1e300)},
    **{form: (2 * A).asformat(form) for form in ("csc", "csr", "coo", "array")},
    "scalar": 1.0,
    "None": None,
    "text": "values",
    "list": A.data.tolist(),
    "too short": A.data[:-1],
    "too long": np.append(A.data, 1.0),
    "2 dimensions": A.data[None],
    "a column": A.data[:, None],
    "strided": np.repeat(A.data, 2)[::2],
    "one NaN": with_value(A, NAN).data,
    "too short with NaN": with_value(A, NAN).data[:-1],
    "another pattern": moved_entry(),
    "fewer entries": canonical(sp.tril(A)),
    "more entries": canonical(A + sp.eye_array(5, k=4)),
    "another shape": S[:4, :4],
    "rectangular": A[:, :4],
    "matrix with NaN": with_value(A, NAN),
    "another pattern with NaN": with_value(moved_entry(), NAN),
    "matrix of longdouble": A.astype("g"),
}
KINDS: dict[str, tuple[Callable[..., Any], Any]] = {
    "splu": (gs.splu, A),
    "cholesky": (gs.cholesky, S),
    "ldlt": (gs.ldlt, K),
}


def refactored(make: Callable[[Any], Any], M: Any, values: Any) -> Any:
    """What refactor says, and whether the factor solves for the right values; those before where it refuses them."""
    factor = make(M)
    before = factor.solve(np.ones(5))
    try:
        factor.refactor(values)
    except (ValueError, RuntimeError, np.linalg.LinAlgError) as error:
        error.add_note(
            f"kept: {(factor.solve(np.ones(5)) == before).all()}, {factor.stats.n_refactor} refactorizations"
        )
        raise
    return factor.solve(np.ones(5))


def batch(make: Any = gs.splu_batch, M: Any = A, count: int = 3, **options: Any) -> Any:
    return make(M, np.stack([(1 + k) * M.data for k in range(count)]), **options)


SPOILT = np.stack([A.data, with_value(A, NAN).data, 0 * A.data])
OPPOSITE = np.stack([S.data, -S.data])
#: Values of a batch, given to splu_batch, Symbolic.factor and refactor.
SYSTEMS: dict[str, Any] = {
    **{
        f"shape {values.shape}": values for values in (A.data, A.data[None, None], np.ones((2, 3)), np.ones((0, A.nnz)))
    },
    **{f"type {char}": np.ones((3, A.nnz), char) for char in "glD"},
    "None": None,
    "spoilt": SPOILT,
}
BATCH: dict[str, Call] = {
    **{f"errors, {given}": partial(batch, errors="ignore", **given) for given in ({}, {"engine": "fast"})},
    **{
        f"{name} {value}": partial(batch, **{name: value})
        for name, value in (("engine", "glu"), ("precision", "mixed"))
    },
    **{f"system {k!r}": lambda k=k: batch()[k] for k in (3, -1, "first")},
    **{f"spoilt system {k}": lambda k=k: gs.splu_batch(A, SPOILT)[k] for k in (1, 2)},
    **{f"check {check}": lambda check=check: batch().solve(b, check=check) for check in CHECKS},
    **{f"trans {trans!r}": lambda trans=trans: batch().solve(b, trans) for trans in DIRECTIONS},
    "status": lambda: gs.splu_batch(A, SPOILT).status.tolist(),
    "solved": lambda: gs.splu_batch(A, SPOILT).solve(b),
    "determinants": lambda: gs.splu_batch(A, SPOILT).slogdet(),
    "raised": lambda: gs.splu_batch(A, SPOILT, errors="raise"),
    "raised at refactor": lambda: batch(errors="raise").refactor(SPOILT),
    "not definite": lambda: gs.cholesky_batch(S, OPPOSITE).status.tolist(),
    "not definite, raised": lambda: gs.cholesky_batch(S, OPPOSITE, errors="raise"),
    "unsymmetric": lambda: batch(gs.cholesky_batch, A),
    "checked": lambda: batch().check(),
    "out": lambda: batch().solve(b, out=np.empty((3, 5))),
    "refactor_solve of another number": lambda: batch().refactor_solve(np.ones((2, A.nnz)), b),
    "stats": lambda: sorted(batch().stats),
    "length, shape": lambda: (len(batch()), batch().shape),
    "Symbolic.factor, errors unknown": lambda: gs.analyze(A).factor(np.stack([A.data, A.data]), errors="x"),
    "Symbolic.factor of ldlt": lambda: gs.analyze(K, ldlt=True).factor(np.stack([K.data, K.data])),
    "Symbolic.factor, mixed": lambda: gs.analyze(A, precision="mixed").factor(np.stack([A.data, A.data])),
    "singular analysis": lambda: gs.splu_batch(0 * A, np.stack([A.data, 0 * A.data])).status.tolist(),
}
COLUMNS: tuple[Any, ...] = (b, b2, np.ones((4, 2)), np.ones((5, 2, 2)), np.ones((5, 0)), np.full(5, NAN), 1j * b, [1.0])
#: What factors of all kinds are asked, and with what: also what a kind has not.
QUESTIONS: dict[str, tuple[tuple[Any, ...], ...]] = {
    **{name: tuple((given,) for given in COLUMNS) for name in ("updated", "update", "downdate", "solve_L", "sample")},
    "selected_inverse": ((), ("LU",), ("all",)),
    "trace_inverse": ((A,), (S[:4, :4],), (A.toarray(),), ("B",)),
    "solve_U": (([1.0],), (b, "X")),
    "__call__": ((b,),),
    "refactor_solve": ((A.data, b), (A.data[:-1], np.ones(4), "X"), (A.data, np.ones(4), "X")),
    **dict.fromkeys(("inverse_diagonal", "inertia", "slogdet", "logdet", "rcond", "check", "perm"), ((),)),
}
INTERFACES: tuple[Any, ...] = ([7], [-1], [1, 1], [0.5], [True, False], [[0, 1]], [], range(5), np.arange(5) < 2)
#: What is done with the complement of the first unknown.
HALVES: dict[str, Callable[[Any], Any]] = {
    "expand first": lambda f: f.expand(np.ones(1)),
    **{f"expand {y.dtype} {y.shape}": lambda f, y=y: f.expand(y, b) for y in (np.ones(2), np.ones(1) + 1j)},
    **{f"condense {given}": lambda f, given=given: f.condense(given) for given in ([1.0], np.ones(4))},
    "refactor": lambda f: f.refactor(A.data[:-1]),
}


def after(make: Callable[[], Any], change: Callable[[Any], Any], ask: Callable[[Any], Any]) -> Any:
    """What a factor answers once it was changed."""
    factor = make()
    given = change(factor)
    return ask(factor if given is None else given)


def with_enabled(call: Call) -> Any:
    with gs.enabled():
        return call()


def stale(lu: Any) -> Any:
    """An update of a factor that was refactored since."""
    updated = lu.updated(b)
    lu.refactor(2 * A.data)
    return updated


def widened(values: np.ndarray, factor: Any) -> None:
    factor.update(np.ones(5))
    factor.refactor(values)


MORE: dict[str, Call] = {
    "updated, singular": lambda: gs.splu(sp.eye_array(2, format="csc")).updated([1.0, 0.0], [-1.0, 0.0]),
    "updated, columns": lambda: gs.splu(A).updated(np.ones((5, 2)), np.ones((5, 3))),
    "updated, precision": lambda: gs.splu(A.astype("f")).updated(np.ones(5)),
    "updated, right-hand side too short": lambda: gs.splu(A).updated(b).solve(np.ones(4)),
    "updated, refactored": partial(after, partial(gs.splu, A), stale, lambda updated: updated.solve(b)),
    "updated, refactored, determinant": partial(after, partial(gs.splu, A), stale, lambda updated: updated.slogdet()),
    "update, sparse NaN": lambda: gs.cholesky(S).update(sp.csc_array(np.full((5, 1), NAN))),
    "update, precision": lambda: gs.cholesky(S.astype("f")).update(np.ones(5)),
    **{
        f"update, widened, {values.size} values": partial(
            after, partial(gs.cholesky, S), partial(widened, values), lambda factor: factor.solve(b)
        )
        for values in (S.data, np.ones(25))
    },
    "downdate, not definite": lambda: gs.cholesky(S).downdate(100 * np.ones(5)),
    "downdate, inside": lambda: gs.cholesky(S).downdate(sp.csc_array(100 * np.eye(5, 1))),
    "Schur, another pattern": lambda: gs.analyze(A, schur=[0]).factor(moved_entry()),
    "Schur, singular interior": lambda: gs.analyze(SINGULAR, schur=[2]).factor(SINGULAR.data),
    "Schur, not definite": lambda: gs.analyze(S, cholesky=True, schur=[2]).factor(-S.data),
    "inertia, complex symmetric": lambda: gs.ldlt(canonical(C + C.T)).inertia(),
    "inertia, singular nearly": lambda: gs.ldlt(canonical(np.array([[1.0, 1], [1, 1 + 2.0**-52]]))).inertia(),
    "ldlt, hermitian of complex symmetric": lambda: gs.ldlt(canonical(C + C.T), hermitian=True),
    "ldlt, not hermitian of Hermitian": lambda: gs.ldlt(H, hermitian=False),
    "ldlt, hermitian of rectangular": lambda: gs.ldlt(A[:, :4], hermitian=True),
    **{
        f"{name}, refactor with {what}": partial(refactored, make, M, values)
        for name, (make, M) in KINDS.items()
        for what, values in (("unsymmetric values", np.arange(1.0, M.nnz + 1)), ("one other value", with_value(M, 9.0)))
    },
    "Symbolic, Cholesky of unsymmetric values": lambda: gs.analyze(S, cholesky=True).factor(np.arange(1.0, S.nnz + 1)),
    **{f"{f.__name__}, both": partial(f, A, cholesky=True, ldlt=True) for f in (gs.analyze, gs.explain)},
    "analyze, both, engine unknown": lambda: gs.analyze(A, cholesky=True, ldlt=True, engine="fast"),
    **{
        f"order of splu, {given}": lambda given=given: (lambda lu: (lu.perm_c.tolist(), lu.perm_r.tolist()))(
            gs.splu(A, **given)
        )
        for given in ({"permc_spec": "NATURAL"}, {"ordering": "natural"}, {"ordering": [4, 3, 2, 1, 0]})
    },
    **{
        f"order of cholesky, {o}": lambda o=o: gs.cholesky(S, ordering=o).perm.tolist()
        for o in ("natural", [4, 3, 2, 1, 0])
    },
    "L is kept": lambda: (lambda lu: (lu.L is lu.L, lu.U is lu.U))(gs.splu(A)),
    "set an attribute": lambda: setattr(gs.splu(A), "shape", (2, 2)),
    "set a new attribute": lambda: setattr(gs.splu(A), "note", "mine"),
    "unknown name of gpusplu": lambda: gs.lu,
    "unknown name of gpusplu.linalg": lambda: gs.linalg.lu,
    "name of SciPy in gpusplu.linalg": lambda: gs.linalg.norm(A),
    "Symbolic of a singular pattern": lambda: gs.analyze(WITHOUT_COLUMN),
    "Symbolic of a singular pattern, factor": lambda: gs.analyze(WITHOUT_COLUMN).factor(WITHOUT_COLUMN.data),
    "Symbolic of a Schur complement": lambda: gs.analyze(A, schur=[0]),
    **{f"stats keys of {name}": lambda m=make, M=M: ", ".join(sorted(m(M).stats)) for name, (make, M) in KINDS.items()},
    "stats keys, mixed": lambda: ", ".join(sorted(gs.splu(A, precision="mixed").stats)),
    "stats, unknown key": lambda: gs.splu(A).stats["speed"],
    "cache_info": lambda: gs.cache_info(),
    **{
        f"cache_limit {given}": partial(gs.cache_limit, **given)
        for given in ({"entries": -1}, {"entries": "x"}, {"bytes": -1})
    },
    "copies": lambda: pickle.loads(pickle.dumps(gs.splu(A))).solve(b),
    "copies of batches": lambda: pickle.loads(pickle.dumps(batch())).solve(b),
    **{
        f"enabled, splu of {what}": lambda M=M: with_enabled(lambda: type(sla.splu(M)))
        for what, M in (("csc", A), ("csr", A.tocsr()), ("rectangular", A[:, :4]), ("singular", SINGULAR))
    },
    "enabled, spsolve singular": lambda: with_enabled(lambda: sla.spsolve(SINGULAR, np.ones(3))),
    "enabled, umfpack": lambda: with_enabled(lambda: sla.spsolve(A, b, use_umfpack=True)),
    "enabled, engine": lambda: with_enabled(lambda: sla.splu(A, engine="cpu")),
    "install twice": lambda: (gs.install(), gs.install(), gs.uninstall(), type(sla.splu(A))),
    **{f"gallery {name}": partial(gs.gallery.named, name) for name in ("wave:3x3", "rlc:3", "poisson:-3x3")},
    **{f"poisson of {n}": partial(gs.gallery.poisson, n, 3) for n in (0, 2.5)},
    **{
        f"spsolve of {form} with sparse {right.format} {right.shape}": partial(gs.spsolve, A.asformat(form), right)
        for form in ("csc", "csr")
        for right in (sp.csc_array(b2), sp.csr_array(b[:, None]), sp.csc_array((4, 2)))
    },
    **{
        f"spsolve, singular, {given.shape}": partial(gs.spsolve, SINGULAR, given)
        for given in (np.ones((3, 2)), SINGULAR)
    },
    **{
        f"spsolve with {given}": partial(gs.spsolve, A, b, **given)
        for given in ({"use_umfpack": False}, {"engine": "cpu"}, {"permc_spec": "FOO"})
    },
    "spsolve of csr, permc_spec unknown": lambda: gs.spsolve(A.tocsr(), b, permc_spec="FOO"),
    "progress that raises": lambda: gs.splu(A, progress=lambda *a: 1 / 0),
}


def in_words(value: Any) -> str:
    """A short name of an argument."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}" + (
            " not finite" if value.dtype.kind == "f" and np.isnan(value).any() else ""
        )
    return f"sparse {value.shape}" if sp.issparse(value) else repr(value)


def single(options: dict[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [{name: value} for name, values in options.items() for value in values]


def named(function: str, calls: dict[str, Callable[..., Any]], given: dict[str, Any]) -> Iterator[tuple[str, Call]]:
    """Every call with every argument."""
    for name, call in calls.items():
        yield from ((f"{function}{name}: {what}", partial(call, one)) for what, one in given.items())


def of_options() -> Iterator[tuple[str, Call]]:
    common = [*single(OPTIONS), *TOGETHER]
    chosen = {"splu": [*common, *single(LU_OPTIONS), *LU_TOGETHER]}
    chosen |= {"cholesky": common[::3], "ldlt": common[1::3], "analyze": common[2::3]}
    functions = {name: partial(make, M) for name, (make, M) in KINDS.items()} | {"analyze": partial(gs.analyze, A)}
    for name, many in chosen.items():
        for given in many:
            said = ", ".join(f"{option} {in_words(value)}" for option, value in given.items())
            yield f"{name} with {said}", partial(functions[name], **given)


def of_two_errors() -> Iterator[tuple[str, Call]]:
    """Which of them is raised."""
    wrong = ("shape (5, 4)", "rectangular with NaN", "with nan", "singular", "of type g", "text", "indices[2] = 7")
    for what in wrong:
        for given in ({"engine": "fast"}, {"ordering": "foo"}, {"engine": "sflu"}):
            yield f"two errors: splu of {what} with {given}", partial(gs.splu, MATRICES[what], **given)
        for name, (make, _) in list(KINDS.items())[1:]:
            yield f"two errors: {name} of {what}", partial(make, MATRICES[what], ordering="foo")
        yield (
            f"two errors: spsolve of {what}, right-hand side too short",
            partial(gs.spsolve, MATRICES[what], np.ones(2)),
        )
    for engine in ("glu", "crisscross"):
        for name, (make, _) in list(KINDS.items())[1:]:
            yield f"two errors: {name} of an indefinite matrix with {engine}", partial(make, K, engine=engine)


def of_right_hand_sides() -> Iterator[tuple[str, Call]]:
    lu = partial(gs.splu, A)
    solves = {"solve": lambda given: lu().solve(given), "spsolve": partial(gs.spsolve, A)}
    yield from named("", solves, RIGHT)
    some = dict(list(RIGHT.items())[::3])
    single_precision = {"solve in single precision": lambda given: gs.splu(A.astype("f")).solve(given)}
    yield from named("", single_precision | {"batch, solve": lambda given: batch().solve(given)}, some)
    ways = {"solve": lambda: lu().solve, "refactor_solve": lambda: partial(lu().refactor_solve, A.data)}
    for name, solve in ways.items():
        for trans in DIRECTIONS:
            for what, given in (("b", b), ("too short", np.ones(4)), ("a list", [1.0])):
                yield f"{name} of {what}, trans {trans!r}", lambda s=solve, given=given, trans=trans: s()(given, trans)
        for check in CHECKS:
            yield f"{name}, check {check}", lambda s=solve, check=check: s()(b, check=check)
        for what, out in OUTS.items():
            yield f"{name}, later, out{what}", lambda s=solve, out=out: s()(b, check="later", out=out)
        yield f"{name}, out", lambda s=solve: s()(b, out=np.empty(5))


def of_values() -> Iterator[tuple[str, Call]]:
    for check in CHECKS[:2]:
        yield f"refactor, check {check}", lambda check=check: gs.splu(A).refactor(A.data, check=check)
    yield from named("", {"Symbolic.factor": lambda values: gs.analyze(A).factor(values)}, VALUES)
    yield from named("", {"refactor": partial(refactored, gs.splu, A)}, VALUES)
    schur = {"factor for a Schur complement": lambda values: gs.analyze(A, schur=[0]).factor(values)}
    yield from named("", schur, dict(list(VALUES.items())[::4]))
    for name, (make, M) in list(KINDS.items())[1:]:
        for scale in (NAN, 0.0, -1.0):
            yield f"{name}, refactor times {scale}", partial(refactored, make, M, M.data * scale)
    batches = {"splu_batch": partial(gs.splu_batch, A), "refactor": lambda values: batch().refactor(values)}
    yield from named("batch, ", batches | {"Symbolic.factor": lambda values: gs.analyze(A).factor(values)}, SYSTEMS)


def of_factors() -> Iterator[tuple[str, Call]]:
    for name, (make, M) in KINDS.items():
        for method, many in QUESTIONS.items():
            for given in many:
                said = ", ".join(map(in_words, given))
                yield (
                    f"{name}, {method}({said})",
                    lambda make=make, M=M, method=method, given=given: getattr(make(M), method)(*given),
                )
    for given in INTERFACES:
        yield f"Schur, {in_words(given)}", lambda given=given: gs.analyze(A, schur=given).factor(A.data).schur
    for what, ask in HALVES.items():
        yield f"Schur, {what}", lambda ask=ask: ask(gs.analyze(A, schur=[0]).factor(A.data))


def all_calls() -> dict[str, Call]:
    calls = dict(named("", FUNCTIONS, MATRICES))
    for k, (name, function) in enumerate(RELATED.items()):
        calls |= named("", {name: function}, dict(list(MATRICES.items())[k % 3 :: 3]))
    for part in (of_options, of_two_errors, of_right_hand_sides, of_values, of_factors):
        calls |= part()
    return calls | {f"batch, {what}": call for what, call in BATCH.items()} | MORE


CALLS = all_calls()
