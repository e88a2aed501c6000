"""Solves: every operator, shape and place of right-hand sides, and every form of the matrix."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from contract.cases import EVERY, backward_error, on_host, only, operators
from support.small_matrices import canonical


@EVERY
def test_every_operator_and_shape(case):
    factor = case.make()
    assert factor.engine == case.engine.name
    for put in case.places:
        for columns in ((), (1,), (3,)):
            b = case.b(*columns)
            for trans, op in operators(case.A):
                given = put(b)
                x = factor.solve(given, trans)
                assert type(x) is type(given) and (x.shape, x.dtype) == (b.shape, b.dtype)
                assert x.flags.f_contiguous
                assert backward_error(op, x, b) < 100 * case.eps, (trans, columns)
                assert np.array_equal(on_host(given), b)
    assert factor.backward_error is None or factor.backward_error < 100 * case.eps


@EVERY
def test_many_columns(case):
    b = case.b(40)
    assert backward_error(case.A, case.make().solve(case.puts(np.asfortranarray(b))), b) < 100 * case.eps


@EVERY
def test_right_hand_sides_of_other_kinds(case):
    factor, b = case.make(), case.b()
    plain = factor.solve(b)
    strided = np.repeat(b, 2)[::2]
    np.testing.assert_allclose(factor.solve(strided), plain, rtol=1e3 * case.eps)
    whole = np.arange(case.n)
    assert factor.solve(whole.astype("h")).dtype == case.A.dtype
    mixed = b + 1j * b[::-1] if case.dtype in "fd" else b
    x = factor.solve(case.puts(mixed))
    assert x.dtype.kind == "c" or case.dtype in "FD"
    assert backward_error(case.A, x, mixed) < 100 * case.eps
    assert factor.solve(np.empty((case.n, 0), case.dtype)).shape == (case.n, 0)
    if case.dtype in "dD":
        assert factor.solve(case.puts(b.real.astype("f"))).dtype == case.A.dtype
    else:
        with pytest.raises(TypeError, match="Cannot cast array data"):
            factor.solve(case.puts(b.astype("D")))


@EVERY
def test_wrong_right_hand_sides(case):
    factor = case.make()
    for put in case.places:
        with pytest.raises(ValueError, match="b is of incompatible size"):
            factor.solve(put(np.ones(3, case.dtype)))
        with pytest.raises(ValueError, match="trans must be N, T, or H"):
            factor.solve(put(case.b()), "X")
        with pytest.raises(ValueError, match="out= is for check='later'"):
            factor.solve(put(case.b()), out=put(case.b()))
        with pytest.raises(ValueError, match="not 'never'"):
            factor.solve(put(case.b()), check="never")
    with pytest.raises(TypeError, match=r"must be numpy\.ndarray, not list"):
        factor.solve([1.0] * case.n)
    case.accurate(factor)


@EVERY
def test_right_hand_sides_that_are_not_finite(case):
    """The factor is none the worse for it."""
    factor, b = case.make(), case.b()
    b[3] = np.nan
    for put in case.places:
        assert np.isnan(on_host(factor.solve(put(b)))).any()
    case.accurate(factor)
    assert factor.stats.n_repivoted == 0


@EVERY
def test_small_orders(case):
    one = sp.csc_array(np.array([[4.0]], case.dtype))
    assert case.make(one).solve(np.array([2.0], case.dtype)) == 0.5
    empty = case.make(sp.csc_array((0, 0), dtype=case.dtype))
    assert empty.solve(np.empty(0, case.dtype)).shape == (0,)
    assert empty.slogdet() == (1, 0)
    diagonal = sp.diags_array(np.arange(1, 6, dtype=case.dtype), format="csc")
    np.testing.assert_allclose(
        case.make(diagonal).solve(np.ones(5, case.dtype)), 1 / np.arange(1, 6), rtol=10 * case.eps
    )


@EVERY
@pytest.mark.parametrize("ordering", ["amd", "nd", "natural", "user"])
def test_orderings(case, ordering):
    perm = np.random.default_rng(0).permutation(case.n) if ordering == "user" else ordering
    factor = case.make(ordering=perm)
    assert factor.stats.ordering == factor.symbolic.ordering == ordering
    case.accurate(factor, put=case.puts)


@EVERY
@pytest.mark.parametrize("precision", ["double", "mixed"])
def test_the_order_of_the_caller_is_kept(case, precision):
    perm = np.random.default_rng(1).permutation(case.n).astype(np.int32)
    ways = [({"ordering": "natural"}, np.arange(case.n)), ({"ordering": perm}, perm)]
    if case.kind == "lu":  # as SciPy has it
        ways += [
            ({name: value}, ways[0][1])
            for name, value in (("permc_spec", "NATURAL"), ("options", {"ColPerm": "NATURAL"}))
        ]
    for options, order in ways:
        factor = case.make(precision=precision, **options)
        for scale in (1, 2):
            factor.refactor(scale * case.A.data)
            M = scale * case.A
            if case.kind == "lu":
                np.testing.assert_array_equal(np.argsort(factor.perm_c), order)
                product, M = factor.L @ factor.U, M[np.argsort(factor.perm_r)][:, order]
            elif case.kind == "cholesky":
                np.testing.assert_array_equal(factor.perm, order)
                product, M = factor.L @ factor.L.conj().T, M[order][:, order]
            else:  # pivots may delay columns
                continue
            assert abs(product - M).max() < 1e3 * case.eps * abs(case.A).max()
    if case.kind == "lu":
        with pytest.raises(ValueError, match="contradicts ordering"):
            case.make(permc_spec="NATURAL", ordering="amd")


@EVERY
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@pytest.mark.parametrize("form", ["csr", "coo", "lil", "csc_matrix", "int64", "unsorted", "dense"])
def test_forms_of_the_matrix(case, form):
    A = case.A
    if form == "int64":
        given = A.copy()
        given.indices, given.indptr = A.indices.astype("q"), A.indptr.astype("q")
    elif form == "unsorted":
        order = np.concatenate([np.arange(e - 1, s - 1, -1) for s, e in zip(A.indptr[:-1], A.indptr[1:], strict=True)])
        given = sp.csc_array((A.data[order], A.indices[order], A.indptr), shape=A.shape)
    else:
        given = {"dense": A.toarray, "csc_matrix": lambda: sp.csc_matrix(A)}.get(form, lambda: A.asformat(form))()
    factor = case.make(given)
    case.accurate(factor)
    if form != "lil":
        data = given.data if sp.issparse(given) else A.data
        factor.refactor(case.puts(3 * data))
        case.accurate(factor, 3 * A)


@EVERY
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_duplicates_are_summed(case):
    coo = case.A.tocoo()
    order = np.random.default_rng(1).permutation(2 * coo.nnz)
    rows, columns = (np.tile(c, 2)[order] for c in coo.coords)
    data = np.tile(coo.data, 2)[order]
    factor = case.make(sp.coo_array((data, (rows, columns)), shape=coo.shape))
    case.accurate(factor, 2 * case.A)
    for put in case.places:
        factor.refactor(put(3 * data))
        case.accurate(factor, 6 * case.A)


@only("cholesky", "ldlt")
@pytest.mark.parametrize("part", [sp.tril, sp.triu])
def test_one_triangle(case, part):
    half = canonical(part(case.A))
    factor = case.make(half)
    case.accurate(factor)
    for put in case.places:
        factor.refactor(put(2 * half.data))
        case.accurate(factor, 2 * case.A)


@only("cholesky", "ldlt")
def test_matrices_that_are_not_hermitian(case):
    A = case.A.tolil()
    A[3, 4] = A[3, 4] + 1
    with pytest.raises(gs.NotHermitianError, match=r"A\[\d, \d\] and the conjugate of A\[\d, \d\] differ"):
        case.make(canonical(A))


@EVERY
def test_calls_solve(case):
    factor = case.make()
    if case.kind == "lu":
        assert not callable(factor)
    else:
        np.testing.assert_array_equal(factor(case.b()), factor.solve(case.b()))


@EVERY
def test_spsolve_factorized_and_names_of_scipy(case):
    """By `enabled`; the engine is the one that is chosen."""
    import scipy.sparse.linalg as sla

    A, b = case.A, case.b()
    for solve in (gs.factorized(A), lambda b: gs.spsolve(A, b), lambda b: gs.spsolve(A.tocsr(), b)):
        assert backward_error(A, solve(b), b) < 100 * case.eps
    with gs.enabled():
        lu = sla.splu(A)
        assert backward_error(A, lu.solve(b), b) < 100 * case.eps
        assert backward_error(A, sla.spsolve(A, b), b) < 100 * case.eps
    assert type(sla.splu(A)) is not type(lu)
