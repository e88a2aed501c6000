"""Answers of distributed factors are measured and mended, whatever their solver did: one rank, and solvers made up."""

import sys
import warnings
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

import gpusplu as gs
from gpusplu.distributed import agreement, calls, factor, refinement, solvers
from gpusplu.distributed.agreement import agreed, check_communicator
from gpusplu.errors import EngineUnavailableError, NonFiniteError

N = 30


class Alone:
    """A communicator of one rank."""

    rank, size = 0, 1

    def allgather(self, one):
        return [one]


class Vector:
    def __init__(self):
        self.array = np.zeros(N)

    def setArray(self, array):
        self.array = np.array(array)

    def getArray(self):
        return self.array

    def axpy(self, alpha, other):
        self.array = self.array + alpha * other.array


class System:
    eps = np.finfo(float).eps

    def __init__(self, A):
        self.A = A
        self.b, self.x, self.r, self.d = (Vector() for _ in range(4))

    def largest(self, vector):
        return float(abs(vector.array).max())

    def measure(self, transposed):
        A = self.A.T if transposed else self.A
        self.r.setArray(self.b.array - A @ self.x.array)
        return self.largest(self.r) / (abs(A).sum(axis=1).max() * self.largest(self.x) + self.largest(self.b))


class Solver:
    """Inverse of the matrix times 1 + error; choosing pivots with care leaves another error."""

    name, kind = "made up", "lu"

    def __init__(self, A, error, with_care):
        self.A, self.error, self._with_care = A, error, with_care
        self.n_factored = 0

    def factor(self):
        self.n_factored += 1

    def harder(self):
        if self._with_care is None:
            return False
        self.error, self._with_care = self._with_care, None
        return True

    def solve(self, b, x, transposed):
        A = self.A.T if transposed else self.A
        x.setArray(np.linalg.solve(A, b.array) * (1 + self.error))


@pytest.fixture
def A():
    return np.eye(N) + np.random.default_rng(0).standard_normal((N, N)) / N


def certified(A, error, with_care=None):
    return refinement.Certified(System(A), Solver(A, error, with_care))


@pytest.mark.parametrize("way", [0, 1, 2])
@pytest.mark.parametrize(("error", "steps"), [(0, 0), (1e-9, 1), (1e-6, 2)])
def test_refinement_goes_on_to_rounding(A, way, error, steps):
    solver = certified(A, error)
    x = solver.solve(np.ones(N), way)
    assert np.allclose((A.T if way else A) @ x, 1, rtol=1e-14)
    assert solver.error < 8 * System.eps
    assert (solver.n_refinement, solver.n_repivoted, solver.must_warn()) == (steps, 0, False)


def test_a_step_that_helps_nothing_is_taken_back(A):
    solver = certified(A, 2.0)
    x = solver.solve(np.ones(N), 0)
    np.testing.assert_allclose(x, 3 * np.linalg.solve(A, np.ones(N)))
    assert solver.n_refinement == 0
    assert solver.must_warn()
    assert not solver.must_warn()


def test_pivots_are_chosen_with_more_care(A):
    solver = certified(A, 0.4, 0.0)
    np.testing.assert_allclose(A @ solver.solve(np.ones(N), 0), 1, rtol=1e-14)
    assert solver.n_repivoted == solver._solver.n_factored == 1
    assert not solver.must_warn()


def test_right_hand_sides_that_are_not_finite_pass_in_silence(A):
    solver = certified(A, 0.0, 0.0)
    assert np.isnan(solver.solve(np.full(N, np.nan), 0)).all()
    assert (solver.n_repivoted, solver.must_warn()) == (0, False)


def test_a_wrong_solution_is_warned_of(A, monkeypatch):
    monkeypatch.setattr(factor, "watch", lambda *_: None)
    rows = SimpleNamespace(comm=Alone(), count=N, n=N, first=0, dtype=np.dtype(float))
    parts = SimpleNamespace(system=System(A), solver=Solver(A, 0.4, None), is_open=True)
    lu = factor.DistributedLUFactor(rows, parts)
    with pytest.warns(RuntimeWarning, match=r"solve: the solution is not finite, or not accurate: its backward error"):
        lu.solve(np.ones(N))
    parts.solver.error = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lu.solve(np.ones((N, 2)))
    assert lu.backward_error < System.eps * 8


def test_the_first_rank_that_fails_speaks_for_all():
    class Two(Alone):
        size = 2

        def allgather(self, one):
            return [one, (one[0], (NonFiniteError, "A[3, 4] is nan"))]

    with pytest.raises(NonFiniteError, match=r"A\[3, 4\] is nan \(rank 1\)"):
        agreed(Two(), ("splu",), lambda: (None, 1))


def test_errors_that_are_not_made_of_a_message_are_passed_on_as_their_base():
    def work():
        raise np.exceptions.AxisError(3, 2)

    with pytest.raises(ValueError, match=r"axis 3 is out of bounds for array of dimension 2 \(rank 0\)"):
        agreed(Alone(), ("splu",), work)
    assert agreement.known_class(np.linalg.LinAlgError()) is ValueError


@pytest.mark.parametrize("comm", [None, 3, SimpleNamespace(allgather=None, is_inter=True)])
def test_what_is_no_communicator(comm):
    with pytest.raises(TypeError, match="comm must be an intracommunicator"):
        check_communicator(comm)


def test_signs_of_pivots_need_real_numbers(monkeypatch):
    """MUMPS' complex factorizations count no negative pivots: a wrong inertia, and Cholesky of what is not definite."""
    library = SimpleNamespace(ScalarType=np.complex128, Sys=SimpleNamespace(hasExternalPackage=lambda name: True))
    monkeypatch.setattr(calls.petsc, "load", lambda: library)
    with pytest.raises(EngineUnavailableError, match="cholesky: this PETSc is built for complex numbers"):
        calls.checked_library("cholesky", "mumps", None)
    assert calls.checked_library("ldlt", "mumps", None) is library
    rows = SimpleNamespace(comm=Alone(), count=N, n=N, first=0, dtype=np.dtype(float))
    with pytest.raises(EngineUnavailableError, match="inertia: this PETSc is built for complex numbers"):
        solvers.Mumps(library, System(np.eye(N)), rows, "lu", None).negative_pivots()


def test_a_petsc_without_the_solver_is_refused(monkeypatch):
    library = SimpleNamespace(ScalarType=float, Sys=SimpleNamespace(hasExternalPackage=lambda name: False))
    monkeypatch.setattr(calls.petsc, "load", lambda: library)
    with pytest.raises(EngineUnavailableError, match="this PETSc was built without superlu_dist"):
        calls.checked_library("lu", "superlu_dist", None)


@pytest.mark.skipif(find_spec("petsc4py") is not None, reason="petsc4py is there")
def test_without_petsc4py():
    with pytest.raises(EngineUnavailableError, match=r"need petsc4py: pip install 'gpusplu\[distributed\]'"):
        gs.distributed.splu(np.eye(3), Alone())


def test_nothing_here_needs_the_core(monkeypatch):
    """A cluster's Python may have none."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "gpusplu"]:
        monkeypatch.delitem(sys.modules, name)
    for missing in ("gpusplu._core", "threadpoolctl"):
        monkeypatch.setitem(sys.modules, missing, None)
    import gpusplu.distributed

    assert gpusplu.distributed.splu.__module__ == "gpusplu.distributed.calls"
    assert "gpusplu.matrix" not in sys.modules
