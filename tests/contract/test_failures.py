"""Values that have no factor, and what is kept of the factor before."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from contract.cases import EVERY, INCOMPATIBLE, backward_error, canonical, on_host, only, with_values
from support.small_matrices import small_pairs
from support.symmetric_values import nearly, spoilt, ways_to_spoil

MESSAGE = {
    "lu": "Factor is exactly singular",
    "cholesky": "is not positive definite",
    "ldlt": "Factor is exactly singular",
}


@EVERY
def test_values_that_are_not_finite(case):
    factor, b = case.make(), case.b()
    before = on_host(factor.solve(b)).tobytes()
    for value in (np.nan, np.inf):
        with pytest.raises(gs.NonFiniteError, match=r"A\[\d+, \d+\] is \(?(nan|inf)"):
            factor.refactor(case.spoilt(value=value))
        assert on_host(factor.solve(b)).tobytes() == before or not case.engine.repeatable
        with pytest.raises(gs.NonFiniteError):
            factor.refactor_solve(case.spoilt(value=value), b)
        with pytest.raises(gs.NonFiniteError):
            case.make(with_values(case.A, case.spoilt(value=value)))
    case.accurate(factor)
    assert factor.stats.n_refactor == 0


@EVERY
def test_the_entry_is_told_in_the_numbers_of_the_caller(case):
    row, column = case.A.indices[5], np.searchsorted(case.A.indptr, 5, "right") - 1
    factor = case.make()
    for call in (lambda: factor.refactor(case.spoilt(5)), lambda: case.make(with_values(case.A, case.spoilt(5)))):
        with pytest.raises(gs.NonFiniteError, match=rf"A\[({row}, {column}|{column}, {row})\] is \(?nan"):
            call()


@EVERY
def test_values_that_have_no_factor(case):
    factor, error = case.make(), INCOMPATIBLE[case.kind]
    with pytest.raises(error, match=MESSAGE[case.kind]):
        factor.refactor(case.unfit())
    case.accurate(factor)
    with pytest.raises(error, match=MESSAGE[case.kind]):
        factor.refactor_solve(case.unfit(), case.b())
    case.accurate(factor)
    with pytest.raises(error, match=MESSAGE[case.kind]):
        case.make(with_values(case.A, case.unfit()))
    factor.refactor(2 * case.A.data)
    case.accurate(factor, case.doubled())


@EVERY
def test_values_on_the_device_show_at_the_next_call(case):
    """What is wrong with them raises there, and the factor is that of the values before."""
    factor, there = case.make(), case.cupy.asarray

    def after(values, call):
        factor.refactor(values)
        call()

    for values, error in ((case.spoilt(), gs.NonFiniteError), (case.unfit(), INCOMPATIBLE[case.kind])):
        for call in (
            lambda: factor.solve(case.b()),
            lambda: factor.solve(there(case.b())),
            lambda: factor.refactor(there(2 * case.A.data)),
            lambda: factor.slogdet(),
            lambda: factor.check(),
        ):
            with pytest.raises(error):
                after(there(values), call)
            case.accurate(factor)
        with pytest.raises(error):
            on_host(factor.refactor_solve(there(values), there(case.b())))
        case.accurate(factor)


@EVERY
def test_parts_are_kept_as_well(case):
    factor = case.make()
    L, determinant = factor.L.toarray(), factor.slogdet()
    for values in (case.spoilt(), case.unfit()):
        with pytest.raises((ValueError, RuntimeError)):
            factor.refactor(values)
        np.testing.assert_allclose(factor.L.toarray(), L, atol=1e3 * case.eps * abs(L).max())
        np.testing.assert_allclose(factor.slogdet(), determinant, rtol=1e4 * case.eps)


@only("cholesky")
def test_the_column_that_is_not_definite_is_told(case):
    values = case.A.copy()
    values.setdiag(case.A.diagonal() - np.where(np.arange(case.n) == 20, 1e3, 0))
    values = canonical(values)
    factor = case.make()
    for ordering in ("amd", "natural"):
        with pytest.raises(gs.NotPositiveDefiniteError, match="column 20 of A has pivot -") as found:
            case.make(values, ordering=ordering)
        assert found.value.column == 20 and found.value.pivot < 0
    for put in case.places:
        with pytest.raises(gs.NotPositiveDefiniteError) as found:
            factor.refactor_solve(put(values.data), put(case.b()))
        assert found.value.column == 20
    case.accurate(factor)


@only("cholesky", "ldlt")
def test_values_that_are_not_hermitian(case):
    """One triangle is factored; the other one is compared with it. Rounding errors are allowed."""
    factor, symbolic, b = case.make(), case.analyze(), case.b()
    before = on_host(factor.solve(b)).tobytes(), factor.slogdet()
    fine, spoilt_values = nearly(case.A, 900), [spoilt(case.A, how) for how in ways_to_spoil(case.dtype)]
    for values in (*spoilt_values, nearly(case.A, 1100)):
        with pytest.raises(gs.NotHermitianError, match=f"^{case.kind}: A.* differ by.* so A is not Hermitian"):
            factor.refactor(values)
        for call in (
            lambda: factor.refactor_solve(values, b),  # noqa: B023
            lambda: factor.refactor(with_values(case.A, values)),  # noqa: B023
            lambda: symbolic.factor(values),  # noqa: B023
            lambda: case.make(with_values(case.A, values)),  # noqa: B023
            lambda: factor.refactor(case.puts(values)) or factor.solve(b),  # noqa: B023
        ):
            with pytest.raises(gs.NotHermitianError, match=f"^{case.kind}: A"):
                call()
        assert (on_host(factor.solve(b)).tobytes(), factor.slogdet()) == before
    spoilt_values[0][7] = np.nan
    with pytest.raises(gs.NonFiniteError):
        factor.refactor(spoilt_values[0])
    for values in (fine, case.puts(fine), with_values(case.A, fine)):
        factor.refactor(values)
        assert backward_error(case.A, factor.solve(b), b) < 1000 * case.eps
    if case.dtype == "d":  # compared by their own precision
        single = case.A.astype("f")
        for values in (with_values(single, nearly(single, 900)), single.data):
            factor.refactor(values)
            factor.solve(b)
    if case.engine.on_device:
        factor.refactor(case.puts(nearly(case.A, 1100)), check="later")
        with pytest.raises(gs.NotHermitianError, match=f"^{case.kind}: A"):
            factor.check()


@only("lu", "ldlt")
def test_singular_patterns(case):
    A = sp.csc_array(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0]], case.dtype))
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        case.make(A)
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        case.make(canonical(np.ones((3, 3), case.dtype)))
    assert case.analyze(A).structural_rank == 2


@only("lu")
def test_spsolve_warns_of_singular_matrices(case):
    with pytest.warns(sp.linalg.MatrixRankWarning):
        x = gs.spsolve(with_values(case.A, case.unfit()), case.b())
    assert np.isnan(x).all()


@EVERY
def test_memory_of_the_device(case):
    """It is known before it is taken."""
    if not case.engine.on_device:
        with pytest.raises(ValueError, match="device_memory=0 must be a positive number"):
            case.make(device_memory=0)
        return
    with pytest.raises(gs.DeviceMemoryError) as error:
        case.make(device_memory=1000)
    assert error.value.free == 1000 < error.value.needed
    case.accurate(case.make(device_memory=error.value.needed))


@EVERY
def test_kinds_that_an_engine_has_not(case):
    """The table is right: a named engine raises for what it has not."""
    A = gs.gallery.poisson(4, 4)
    for kind, make in (("lu", gs.splu), ("cholesky", gs.cholesky), ("ldlt", gs.ldlt)):
        if kind in case.engine.kinds:
            assert make(A, engine=case.engine.name).engine == case.engine.name
        else:
            with pytest.raises(
                gs.EngineUnavailableError, match=f"engine='{case.engine.name}' (is for LU|has no {kind})"
            ):
                make(A, engine=case.engine.name)


@only("lu", dtypes="dD")
def test_perturbed_pivots_do_not_hide_in_a_norm(case):
    """A block that is 2^-46 of the rest, whose pivots become small: it is accurate by itself."""
    rng = np.random.default_rng(0)
    block = rng.uniform(1, 2, (12, 12)) + 12 * np.eye(12)

    def whole(block):
        return canonical(sp.block_diag([gs.gallery.poisson(4, 4), 2.0**-46 * block])).astype(case.dtype)

    factor = case.make(whole(block))
    block[:4, :4] *= 1e-10
    A = whole(block)
    factor.refactor(case.puts(A.data))
    b = np.concatenate([np.ones(16), 2.0**-46 * (block @ np.ones(12))]).astype(case.dtype)
    x = on_host(factor.solve(case.puts(b)))
    assert backward_error(A, x, b) < 100 * case.eps
    assert abs(x[16:] - 1).max() < 1e-8


@EVERY
@pytest.mark.filterwarnings("ignore:overflow")
def test_solutions_out_of_range_are_warned_of(case):
    """The factor still solves with other right-hand sides."""
    tiny = 1e-30 if case.dtype in "fF" else 1e-200
    A = canonical(tiny * case.A)
    factor = case.make(A.astype(case.dtype))
    for put in case.places:
        with pytest.warns(RuntimeWarning, match="overflow encountered in solve"):
            factor.solve(put((case.b() / tiny).astype(case.dtype)))
    b = (tiny * case.b()).astype(case.dtype)
    scaled = on_host(factor.solve(case.puts(b)))
    np.testing.assert_allclose(case.A @ scaled, case.b(), rtol=0, atol=1e3 * case.eps * abs(case.b()).max())


@only(dtypes="dD")
def test_pairs_of_columns_that_nearly_cancel(case):
    """Each beside rows that would be better, in a block that is too small for a norm of the whole."""
    A = small_pairs(6)
    A = canonical(A if case.kind == "lu" else (A + A.T) / 2).astype(case.dtype)
    if case.kind == "cholesky":
        A = canonical(A @ A.T + sp.eye_array(A.shape[0]) * 1e-20).astype(case.dtype)
        return case.accurate(case.make(A), A)
    factor = case.make(A)
    for scale in (1, 2):
        factor.refactor(case.puts(scale * A.data))
        x = on_host(factor.solve(case.puts(scale * (A @ np.ones(A.shape[0], case.dtype)))))
        assert abs(x - 1).max() < 1e-9
