"""The arguments that choose how factors are made, ours and SuperLU's."""

import pickle
import re
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
import gpusplu.linalg
from gpusplu.common.installed import install_hint
from gpusplu.common.timing import backward_error
from gpusplu.cuda import presence
from support.processes import run
from support.small_matrices import EPS, random_matrix, rhs, spd_matrix


@pytest.fixture
def without_cupy(monkeypatch):
    def forget():
        presence.no_driver.cache_clear()
        presence.no_device.cache_clear()

    monkeypatch.setitem(sys.modules, "cupy", None)
    forget()
    yield
    forget()


@pytest.mark.parametrize("engine", ["glu", "sflu", "crisscross", "supernodal"])
@pytest.mark.parametrize("call", [gs.splu, gs.cholesky, gs.analyze, gs.explain])
def test_gpu_engine_by_name_needs_cupy(call, engine, without_cupy):
    hint = re.escape(install_hint("cuda13", "cuda12"))
    with pytest.raises(gs.EngineUnavailableError, match=f"GPU engines need CuPy .*; {hint}, or"):
        call(spd_matrix(), engine=engine)


def test_auto_without_cupy(without_cupy):
    assert "cpu: engine='auto' and CuPy is not installed" in gs.splu(spd_matrix()).explain()


def test_refinement_by_the_option_of_superlu():
    A = spd_matrix()
    for options, measured in (({"IterRefine": "DOUBLE"}, 3), ({"IterRefine": "NOREFINE"}, 1)):
        lu, found = gs.splu(A, options=options), set()
        for k in range(3):
            lu.solve(rhs(50, seed=k))
            found.add(lu.backward_error)
        assert len(found) >= measured


def test_static_pivots_that_went_bad_are_warned_of():
    rng = np.random.default_rng(0)
    A = rng.uniform(-1, 1, (30, 30))
    A[np.arange(30), np.arange(30)] *= 1e-14
    lu = gs.splu(sp.csc_array(A + 4 * np.eye(30)), permc_spec="NATURAL", diag_pivot_thresh=0.0, pivoting="static")
    lu.refactor(sp.csc_array(A).data)
    with pytest.warns(RuntimeWarning, match="not accurate"):
        x = lu.solve(np.ones(30))
    assert backward_error(A, x, np.ones(30)) > 1e-8


def test_diag_pivot_thresh_is_superlus():
    A = sp.csc_array(random_matrix(density=0.2).toarray() * 0.3 + np.diag(np.full(60, 0.05)))
    multipliers = abs(gs.splu(A, diag_pivot_thresh=0.99, pivoting="partial").L).max()
    assert multipliers <= 1 / 0.99
    sizes = {"relax": 2, "panel_size": 3}  # have no effect
    for extra in ({"permc_spec": "NATURAL"}, {"options": {"SymmetricMode": True}}, sizes):
        A = spd_matrix()
        lu = gs.splu(A, diag_pivot_thresh=0.0, **extra)
        np.testing.assert_array_equal(lu.perm_r, lu.perm_c)
        assert backward_error(A, lu.solve(rhs(50)), rhs(50)) < 50 * EPS["d"]


@pytest.mark.filterwarnings("ignore:overflow encountered")  # as an error it would stop the conversion
@pytest.mark.parametrize("dtype", "dD")
@pytest.mark.parametrize("options", [{"pivoting": "partial"}, {"expected_refactors": 3}, {"ordering": "amd"}])
def test_values_are_analysed_in_their_own_precision(options, dtype):
    """Single precision would take these for infinity and zero."""
    A = sp.csc_array(np.array([[3e-75, 1e42], [1e-87, -2e30]]).astype(dtype))
    x = np.array([1e117, 1], dtype)
    lu = gs.splu(A, **options)
    np.testing.assert_allclose(lu.solve(A @ x), x, rtol=1e-12)


def test_arrays_that_have_nothing_but_dlpack():
    class Bare:
        def __init__(self, array):
            self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

    A, b = spd_matrix(12), Bare(np.ones(12))
    with pytest.raises(TypeError, match=r"argument 1 must be numpy\.ndarray, not Bare; pass numpy\.from_dlpack of it"):
        gs.splu(A).solve(b)
    with pytest.raises(TypeError, match=r"argument 1 must be numpy\.ndarray, not Bare; pass numpy\.from_dlpack of it"):
        gs.splu_batch(A, A.data[None]).solve(b)
    with pytest.raises(TypeError, match=r"b must be an array, not Bare; pass numpy\.from_dlpack of it"):
        gs.spsolve(A, b)


def test_options_that_cannot_be_hashed_and_matrices_that_are_too_large():
    with pytest.raises(ValueError, match="value not a boolean"):  # SciPy's message
        gs.splu(spd_matrix(), options={"Equil": []})
    with pytest.raises(ValueError, match="A has 2147483648 columns, at most"):
        gs.analyze(sp.coo_array((2**31, 2**31)))


SPLU = "import gpusplu, scipy.sparse as sp; gpusplu.splu(sp.eye_array(3, format='csc'))"


@pytest.mark.parametrize("value", ["", "0", "2x", "99999999999"])
def test_numbers_of_threads_that_are_none(value):
    expected = f"ValueError: GPUSPLU_NUM_THREADS must be a whole number from 1 on, such as 4, got '{value}'"
    with pytest.raises(AssertionError, match=rf"^exit status 1\n(.*\n)* *{re.escape(expected)}\n"):
        run(SPLU, GPUSPLU_NUM_THREADS=value)


def test_a_number_of_threads():
    assert run(f"{SPLU}; print(gpusplu._core.num_threads())", GPUSPLU_NUM_THREADS="3") == "3\n"


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
