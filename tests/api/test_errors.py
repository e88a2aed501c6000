"""Every exception can be caught as ours and as what SciPy or NumPy would raise, says what to do, and pickles."""

import pickle

import numpy as np
import pytest

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


def test_every_exception_has_two_parents():
    defined = {v for v in vars(gs.errors).values() if isinstance(v, type) and issubclass(v, gs.GpuspluError)}
    assert defined == {gs.GpuspluError, *PARENTS}
    assert set(gs.errors.__all__) == {kind.__name__ for kind in defined}
    assert all(issubclass(kind, gs.GpuspluError) and issubclass(kind, parent) for kind, parent in PARENTS.items())
    assert issubclass(gs.NonFiniteError, RuntimeError)  # loops that halve a step catch SciPy's, of singular matrices


ASK_LDLT = "if A is Hermitian indefinite use ldlt(A)"
SAID = (
    (
        gs.NotPositiveDefiniteError(17, -3.2e-5),
        {"column": 17, "pivot": -3.2e-5},
        f"cholesky: column 17 of A has pivot -3.2e-05, so A is not positive definite; {ASK_LDLT}",
    ),
    (gs.NotPositiveDefiniteError(), {"column": -1}, f"cholesky: A is not positive definite; {ASK_LDLT}"),
    (
        gs.HostMemoryError(2_000_000, 1_000),
        {"needed": 2_000_000, "free": 1_000},
        "needs about 2,000,000 bytes of memory on a rank and 1,000 bytes are free",
    ),
    (gs.HostMemoryError(0, 1000), {}, "needs more memory on a rank and 1,000 bytes"),
    (gs.DeviceMemoryError(2_000_000, 1_000), {"needed": 2_000_000, "free": 1_000}, "2,000,000"),
    (
        gs.SolverError("mumps", -51, 7),
        {"engine": "mumps", "code": -51, "detail": 7},
        "mumps stopped with code -51 (7): its manual says why",
    ),
)


@pytest.mark.parametrize(("error", "attributes", "text"), SAID)
def test_texts_and_attributes_are_pickled(error, attributes, text):
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and text in str(error)
    assert {name: getattr(again, name) for name in attributes} == attributes
