"""The same calls through scipy.sparse.linalg, gpusplu.linalg and SciPy's names under install().

Compared: value, type, dtype, shape, memory order; exception type and message; warnings and their order.
"""

import contextlib
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg

import gpusplu
import gpusplu.linalg

NAMES = ("splu", "spsolve", "factorized", "spilu", "use_solver")
ORIGINAL = SimpleNamespace(**{name: getattr(scipy.sparse.linalg, name) for name in NAMES})


def dense(dtype="d"):
    A = np.array([[4, 1, 0, 0, 2], [1, 5, 1, 0, 0], [0, 2, 6, 1, 0], [0, 0, 1, 7, 1], [1, 0, 0, 3, 8]], dtype=dtype)
    if A.dtype.kind == "c":
        A += 1j * np.tri(5, dtype=dtype)
    return A


FORMATS = ("csc", "csr", "coo", "bsr", "dia", "dok", "lil")
A = sp.csc_array(dense())
SINGULAR = sp.csc_array(np.diag([1.0, 2, 0, 3, 4]))
B = np.arange(5.0)
B2 = np.arange(10.0).reshape(5, 2)


class Vector(np.ndarray):
    pass


def duplicated():
    """A with its first entry split in two, and rows out of order."""
    data, indices, indptr = A.data.copy(), A.indices.copy(), A.indptr.copy()
    data[0] -= 1
    data, indices = np.append(1.0, data), np.append(indices[0], indices)
    indptr[1:] += 1
    data[: indptr[1]], indices[: indptr[1]] = data[: indptr[1]][::-1].copy(), indices[: indptr[1]][::-1].copy()
    return sp.csc_array((data, indices, indptr), shape=A.shape)


def duplicates_of(dtype, name):
    """Each entry three times."""
    row, col = np.tile([*range(5), 0, 3], 3), np.tile([*range(5), 2, 1], 3)
    data = np.tile([101, 90, 7, 99, 5, 2, 3], 3).astype(dtype)
    if name == "coo":
        return sp.coo_array((data, (row, col)), shape=(5, 5))
    order = np.argsort(col, kind="stable")
    return sp.csc_array((data[order], row[order], np.append(0, np.bincount(col).cumsum())), shape=(5, 5))


def thirds(dtype):
    """Entries three times, whose sums are rounded."""
    made = duplicates_of(dtype, "csc")
    made.data = (made.data / np.arange(3, made.nnz + 3)).astype(dtype)
    return made


SOLVE_ON_FLOAT64 = {
    "vector": (B,),
    "transposed": (B, "T"),
    "adjoint": (B, "H"),
    "lower case trans": (B, "t"),
    "columns": (B2,),
    "C order, many": (np.ones((5, 7)),),
    "one column": (B[:, None],),
    "no column": (np.ones((5, 0)),),
    "strided": (np.arange(10.0)[::2],),
    "int": (np.arange(5),),
    "bool": (np.ones(5, dtype=bool),),
    "float32": (B.astype("f"),),
    "other byte order": (B.astype(">f8"),),
    "subclass": (B.view(Vector),),
    "masked": (np.ma.array(B, mask=[0, 0, 1, 0, 0]),),
    "mask that cannot be taken off": (np.ma.array(B2, mask=B2 == 3, hard_mask=True), "T"),
    "NaN": (np.full(5, np.nan),),
    "unknown trans": (B, "X"),
    "two letters": (B, "NT"),
    "trans is None": (B, None),
    "trans is bytes": (B, b"T"),
    "list": ([1.0, 2, 3, 4, 5],),
    "scalar": (1.0,),
    "None": (None,),
    "sparse": (sp.csc_array(B2),),
    "0-d array": (np.array(1.0),),
    "0-d array of longdouble": (np.array(1.0, "g"),),
    "3-d of longdouble": (np.ones((5, 2, 2), "g"),),
    "too short": (np.ones(4),),
    "empty": (np.ones(0),),
    "row": (np.ones((1, 5)),),
    "too few rows": (np.ones((4, 2)),),
    "3-d": (np.ones((5, 2, 2)),),
    "longdouble": (B.astype("g"),),
    "object": (B.astype(object),),
    "text": (np.array(list("abcde")),),
}


def splu_with(**arguments):
    return lambda lib: lib.splu(A, **arguments).solve(B)


CASES = {
    **{f"solve {k}": lambda lib, v=v: lib.splu(A).solve(*v) for k, v in SOLVE_ON_FLOAT64.items()},
    "solve keywords": lambda lib: lib.splu(A).solve(rhs=B, trans="T"),
    **{
        f"solve {right} on {left}": lambda lib, left=left, right=right: lib.splu(A.astype(left)).solve(B.astype(right))
        for left in "fFD"
        for right in ("f", "d", "D", "F", "i", "h")
        if not (left == "f" and right in "FD")  # ours solves the parts; see test_complex_right_hand_side
    },
    **{
        f"solve {t} {trans}": lambda lib, t=t, trans=trans: lib.splu(sp.csc_array(dense(t))).solve(B2.astype(t), trans)
        for t in "fdFD"
        for trans in "NTH"
    },
    **{f"splu {f}": lambda lib, f=f: lib.splu(A.asformat(f)).solve(B) for f in FORMATS},
    **{f"splu of {t}": lambda lib, t=t: lib.splu(A.astype(t)).L.dtype for t in "bBhHiIlLqQ?fdFDgG"},
    "splu int64 indices": lambda lib: lib.splu(
        sp.csc_array((A.data, A.indices.astype("q"), A.indptr.astype("q")), shape=A.shape)
    ).solve(B),
    "splu spmatrix": lambda lib: lib.splu(sp.csc_matrix(A)).solve(B),
    "splu dense": lambda lib: lib.splu(dense()).solve(B),
    "splu list": lambda lib: lib.splu([[1.0, 2], [3, 4]]).solve(B[:2]),
    "splu duplicates, unsorted": lambda lib: lib.splu(duplicated()).solve(B),
    "splu 0 x 0": lambda lib: lib.splu(sp.csc_array((0, 0))).solve(np.zeros(0)),
    "splu 1 x 1": lambda lib: lib.splu(sp.csc_array([[2.0]])).solve(np.ones(1)),
    "splu singular": lambda lib: lib.splu(SINGULAR),
    "splu empty": lambda lib: lib.splu(sp.csc_array((5, 5))),
    "splu rectangular": lambda lib: lib.splu(A[:, :4]),
    "splu 1-d": lambda lib: lib.splu(np.ones(3)),
    "splu 1-d sparse": lambda lib: lib.splu(sp.coo_array(np.ones(3))),
    "splu 3-d": lambda lib: lib.splu(np.ones((2, 2, 2))),
    "splu scalar": lambda lib: lib.splu(3.0),
    "splu None": lambda lib: lib.splu(None),
    "splu rectangular of longdouble": lambda lib: lib.splu(A[:, :4].astype("g")),
    "splu of longdouble with an unknown option": lambda lib: lib.splu(A.astype("g"), options={"Foo": 1}),
    "splu rectangular with an unknown option": lambda lib: lib.splu(A[:, :4], options={"Foo": 1}),
    "splu object": lambda lib: lib.splu(dense().astype(object)),
    "shape": lambda lib: lib.splu(A).shape,
    "L and U": lambda lib: (type(lib.splu(A).L), type(lib.splu(A).U), lib.splu(A).L.indices.dtype),
    "L is cached": lambda lib: (lambda lu: lu.L is lu.L and lu.U is lu.U)(lib.splu(A)),
    "perm": lambda lib: (lambda lu: (lu.perm_r.dtype, lu.perm_r.shape, lu.perm_c.dtype))(lib.splu(A)),
    "product": lambda lib: (lambda lu: (lu.L @ lu.U)[lu.perm_r][:, lu.perm_c].toarray())(lib.splu(A)),
    "natural": lambda lib: lib.splu(A, permc_spec="NATURAL").perm_c,
    "natural lower case": lambda lib: lib.splu(A, permc_spec="natural").perm_c,
    "natural by options": lambda lib: lib.splu(A, options={"ColPerm": "NATURAL"}).perm_c,
    **{f"permc_spec {p!r}": splu_with(permc_spec=p) for p in ("COLAMD", "MMD_ATA", "MMD_AT_PLUS_A", "FOO", 0, 99)},
    **{f"threshold {t!r}": splu_with(diag_pivot_thresh=t) for t in (0.0, 0.5, 1.0, 5.0, -1, "x")},
    **{f"relax {r!r}": splu_with(relax=r) for r in (4, "a", 1.5)},
    **{f"panel_size {p!r}": splu_with(panel_size=p) for p in (4, "a", 1.5)},
    "unknown ordering and size": splu_with(permc_spec="FOO", relax=1.5),
    "two unknown sizes": splu_with(relax="a", panel_size=1.5),
    **{f"options {o!r}": splu_with(options=o) for o in ({}, 3, {1: 2}, [("Equil", False)])},
    **{
        f"option {name} {value!r}": splu_with(options={name: value})
        for name, values in {
            "foo": [1],
            "SymmetricMode": [True, "x"],
            "Equil": [False, 3],
            "ColPerm": ["FOO", None],
            "Trans": ["T"],
            "DiagPivotThresh": ["a", 0.0],
            "IterRefine": ["DOUBLE", "X"],
            "Fact": ["DOFACT"],
            "PanelSize": ["a"],
            "Relax": [-3],
            "RowPerm": ["LargeDiag"],
        }.items()
        for value in values
    },
    "factorized": lambda lib: lib.factorized(A)(B),
    "factorized csr": lambda lib: lib.factorized(A.tocsr())(B),
    "factorized dense": lambda lib: lib.factorized(dense())(B),
    "factorized singular": lambda lib: lib.factorized(SINGULAR),
    "factorized rectangular": lambda lib: lib.factorized(A[:, :4]),
    "spsolve": lambda lib: lib.spsolve(A, B),
    **{f"spsolve {f}": lambda lib, f=f: lib.spsolve(A.asformat(f), B) for f in FORMATS[1:]},
    "spsolve dense": lambda lib: lib.spsolve(dense(), B),
    "spsolve list": lambda lib: lib.spsolve(A, [1, 2, 3, 4, 5]),
    "spsolve columns": lambda lib: lib.spsolve(A, B2),
    "spsolve csr columns": lambda lib: lib.spsolve(A.tocsr(), B2),
    "spsolve complex csr": lambda lib: lib.spsolve(sp.csr_array(dense("D")), B2 + 1j),
    "spsolve one column": lambda lib: lib.spsolve(A, B[:, None]),
    "spsolve no column": lambda lib: lib.spsolve(A, np.ones((5, 0))),
    "spsolve matrix": lambda lib: lib.spsolve(A, np.matrix(B2)),
    "spsolve 0 x 0": lambda lib: lib.spsolve(sp.csc_array((0, 0)), np.zeros(0)),
    **{
        f"spsolve {left} with {right}": lambda lib, left=left, right=right: lib.spsolve(A.astype(left), B.astype(right))
        for left in "?bilfdFDg"
        for right in "?bilefdFDg"
    },
    "spsolve object": lambda lib: lib.spsolve(A, B.astype(object)),
    "spsolve text": lambda lib: lib.spsolve(A, np.array(list("abcde"))),
    "spsolve singular": lambda lib: lib.spsolve(SINGULAR, B),
    "spsolve singular columns": lambda lib: lib.spsolve(SINGULAR, B2),
    "spsolve singular, sparse": lambda lib: lib.spsolve(SINGULAR, sp.csc_array(B2)),
    "spsolve rectangular": lambda lib: lib.spsolve(A[:, :4], B),
    "spsolve rectangular with longdouble": lambda lib: lib.spsolve(A[:, :4], B.astype("g")),
    "spsolve mismatch of longdouble": lambda lib: lib.spsolve(A, np.ones(4, "g")),
    "spsolve with sparse longdouble": lambda lib: lib.spsolve(A, sp.csc_array(B2.astype("g"))),
    "spsolve csr with sparse longdouble": lambda lib: lib.spsolve(A.tocsr(), sp.csc_array(B2.astype("g"))),
    **{
        f"duplicates of {t} in {f}": lambda lib, t=t, f=f: lib.splu(duplicates_of(t, f)).solve(B.astype("f"))
        for t in "?bB"
        for f in ("csc", "coo")
    },
    "spsolve duplicates of booleans": lambda lib: lib.spsolve(duplicates_of("?", "csc"), B),
    "spsolve duplicates of single precision": lambda lib: lib.spsolve(thirds("f"), B),
    "spsolve mismatch": lambda lib: lib.spsolve(A, np.ones(4)),
    "spsolve mismatch columns": lambda lib: lib.spsolve(A, np.ones((4, 2))),
    "spsolve mismatch sparse": lambda lib: lib.spsolve(A, sp.csc_array((4, 2))),
    "spsolve row": lambda lib: lib.spsolve(A, np.ones((1, 5))),
    "spsolve scalar": lambda lib: lib.spsolve(A, 1.0),
    "spsolve 3-d": lambda lib: lib.spsolve(A, np.ones((5, 2, 2))),
    "spsolve natural": lambda lib: lib.spsolve(A, B, permc_spec="NATURAL"),
    "spsolve bad permc_spec": lambda lib: lib.spsolve(A, B, permc_spec="FOO"),
    "spsolve without umfpack": lambda lib: lib.spsolve(A, B, use_umfpack=False),
    "spsolve duplicates": lambda lib: lib.spsolve(duplicated(), B),
    **{
        f"spsolve {left} with sparse {right}": lambda lib, left=left, right=right: lib.spsolve(
            A.asformat(left), sp.csc_array(B2).asformat(right)
        )
        for left in ("csc", "csr", "coo")
        for right in FORMATS
    },
    "spsolve with sparse column": lambda lib: lib.spsolve(A, sp.csr_array(B[:, None])),
    "spsolve with sparse 1-d": lambda lib: lib.spsolve(A, sp.coo_array(B)),
    "spsolve spmatrix with sparse": lambda lib: lib.spsolve(sp.csr_matrix(A), sp.csc_array(B2)),
    "spsolve sparse wide": lambda lib: lib.spsolve(A, sp.csc_array(np.eye(5, 90, 3))),
    "spsolve real with complex sparse": lambda lib: lib.spsolve(A, sp.csc_array(B2 + 1j)),
}


def observe(call, lib):
    """(outcome, warnings): what a caller can see."""
    lib.use_solver(useUmfpack=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = call(lib)
        except Exception as error:
            outcome = error
    seen = [(w.category, str(w.message)) for w in caught if not issubclass(w.category, PendingDeprecationWarning)]
    return outcome, seen


def assert_alike(ours, theirs):
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs)), f"{ours!r} instead of {theirs!r}"
        # argument numbers and the like are SciPy's; addresses are not
        assert re.sub(r"0x\w+", "", str(ours)) == re.sub(r"0x\w+", "", str(theirs))
        return
    assert not isinstance(ours, Exception), f"{ours!r} instead of {theirs!r}"
    assert type(ours) is type(theirs)
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            assert_alike(our, their)
    elif sp.issparse(theirs):
        assert (ours.format, ours.dtype, ours.shape, ours.indices.dtype) == (
            theirs.format,
            theirs.dtype,
            theirs.shape,
            theirs.indices.dtype,
        )
        assert_close(ours.toarray(), theirs.toarray())
    elif isinstance(theirs, np.ndarray):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert ours.flags.f_contiguous == theirs.flags.f_contiguous
        assert ours.flags.writeable
        np.testing.assert_array_equal(np.ma.getmaskarray(ours), np.ma.getmaskarray(theirs))
        assert_close(np.asarray(ours), np.asarray(theirs))
    else:
        assert ours == theirs


def assert_close(ours, theirs):
    if theirs.dtype.kind == "i":
        np.testing.assert_array_equal(ours, theirs)
    else:
        np.testing.assert_allclose(
            ours, theirs, rtol=100 * np.finfo(theirs.dtype).eps, atol=10 * np.finfo(theirs.dtype).eps
        )


@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_calls_are_alike(case, enabled):
    """By gpusplu.linalg, or by SciPy's names when enabled."""
    theirs, their_warnings = observe(CASES[case], ORIGINAL)
    with gpusplu.enabled() if enabled else contextlib.nullcontext():
        ours, our_warnings = observe(CASES[case], scipy.sparse.linalg if enabled else gpusplu.linalg)
    assert_alike(ours, theirs)
    assert our_warnings == their_warnings


@pytest.mark.parametrize("broken", ["NaN", "Inf", "complex"])
def test_enabled_keeps_what_gpusplu_does_better(broken):
    """Where our contract differs from SciPy's, code under install() still sees SciPy's."""
    bad = A.copy()
    if broken != "complex":
        bad.data[3] = np.nan if broken == "NaN" else np.inf
    calls = [
        lambda lib: lib.splu(bad).solve(B + 1j if broken == "complex" else B),
        lambda lib: lib.factorized(bad)(B.astype("F") if broken == "complex" else B),
    ]
    if broken != "complex":
        calls.append(lambda lib: lib.spsolve(bad, B))
    for call in calls:
        theirs = observe(call, ORIGINAL)
        with gpusplu.enabled():
            ours = observe(call, scipy.sparse.linalg)
        assert_alike(ours[0], theirs[0])
        assert ours[1] == theirs[1]


def test_umfpack_that_is_not_there():
    with gpusplu.enabled():
        for lib in (ORIGINAL, gpusplu.linalg, scipy.sparse.linalg):
            try:
                lib.use_solver(useUmfpack=True)
                for call in (lambda lib: lib.spsolve(A, B), lambda lib: lib.factorized(A)):
                    with pytest.raises(RuntimeError, match=r"Scikits\.umfpack not installed\."):
                        call(lib)
                assert lib.spsolve(A, B, use_umfpack=False).shape == (5,)
            finally:
                lib.use_solver(useUmfpack=False)


def test_warnings_name_the_callers_line():
    for lib in (ORIGINAL, gpusplu.linalg, gpusplu):
        with pytest.warns(sp.SparseEfficiencyWarning) as caught:
            lib.splu(A.tocsr())
        assert caught[0].filename == __file__
    with gpusplu.enabled(), pytest.warns(sp.SparseEfficiencyWarning) as caught:
        scipy.sparse.linalg.splu(A.tocsr())
    assert caught[0].filename == __file__


def test_input_is_never_modified():
    for matrix in (duplicated(), duplicated().tocsr(), sp.coo_array(A), A.astype("i")):
        arrays = [
            matrix.data,
            *((matrix.row, matrix.col) if matrix.format == "coo" else (matrix.indices, matrix.indptr)),
        ]
        before = [array.copy() for array in arrays]
        b = B.copy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gpusplu.splu(matrix).solve(b)
            gpusplu.spsolve(matrix, b)
        for array, copy in zip([*arrays, b], [*before, B], strict=True):
            np.testing.assert_array_equal(array, copy)
