"""Every exception can be caught as ours and as what SciPy or NumPy would raise, says what to do, and pickles."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs

PARENTS = {
    gs.NotPositiveDefiniteError: np.linalg.LinAlgError,
    gs.NotHermitianError: ValueError,
    gs.NoSymmetricFactorError: RuntimeError,
    gs.NonFiniteError: ValueError,
    gs.PatternMismatchError: ValueError,
    gs.AccuracyError: RuntimeError,
    gs.EngineUnavailableError: RuntimeError,
    gs.DeviceFailedError: RuntimeError,
    gs.DeviceMemoryError: MemoryError,
    gs.HostMemoryError: MemoryError,
    gs.SolverError: RuntimeError,
    gs.BatchError: RuntimeError,
    gs.IllConditionedUpdateError: np.linalg.LinAlgError,
}


@pytest.mark.parametrize("kind", PARENTS)
def test_each_inherits_twice(kind):
    assert issubclass(kind, gs.GpuspluError)
    assert issubclass(kind, PARENTS[kind])


@pytest.mark.parametrize("solve", [gs.splu, lambda A: gs.spsolve(A, np.ones(3)), gs.factorized])
def test_loops_that_halve_a_step_catch_what_is_not_finite(solve):
    """As SciPy's RuntimeError, by which they know singular matrices too."""
    A = sp.csc_array(np.diag([1.0, np.nan, 2.0]))
    with pytest.raises(RuntimeError, match="is nan"):
        solve(A)


def test_none_is_missing_here():
    defined = {v for v in vars(gs.errors).values() if isinstance(v, type) and issubclass(v, gs.GpuspluError)}
    assert defined == {gs.GpuspluError, *PARENTS}
    assert set(gs.errors.__all__) == {kind.__name__ for kind in defined}


def test_not_positive_definite_says_where_and_what_to_do():
    error = pickle.loads(pickle.dumps(gs.NotPositiveDefiniteError(17, -3.2e-5)))
    assert (error.column, error.pivot) == (17, -3.2e-5)
    assert str(error) == (
        "cholesky: column 17 of A has pivot -3.2e-05, so A is not positive definite; "
        "if A is Hermitian indefinite use ldlt(A)"
    )


def test_a_solver_of_others_does_not_tell_the_column():
    error = pickle.loads(pickle.dumps(gs.NotPositiveDefiniteError()))
    assert error.column == -1
    assert np.isnan(error.pivot)
    assert str(error) == "cholesky: A is not positive definite; if A is Hermitian indefinite use ldlt(A)"


def test_host_memory_says_how_much():
    error = pickle.loads(pickle.dumps(gs.HostMemoryError(2_000_000, 1_000)))
    assert (error.needed, error.free) == (2_000_000, 1_000)
    assert "needs about 2,000,000 bytes of memory on a rank and 1,000 bytes are free" in str(error)
    assert "needs more memory on a rank and 1,000 bytes" in str(gs.HostMemoryError(0, 1000))


def test_a_solver_of_others_says_its_code():
    error = pickle.loads(pickle.dumps(gs.SolverError("mumps", -51, 7)))
    assert (error.engine, error.code, error.detail) == ("mumps", -51, 7)
    assert str(error) == "mumps stopped with code -51 (7): its manual says why"


def test_device_memory_says_how_much():
    error = pickle.loads(pickle.dumps(gs.DeviceMemoryError(2_000_000, 1_000)))
    assert (error.needed, error.free) == (2_000_000, 1_000)
    assert "2,000,000" in str(error)
    assert "1,000" in str(error)
