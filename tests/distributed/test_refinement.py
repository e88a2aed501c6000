"""Solutions of distributed factors are measured and refined, whatever their solver did: one rank; fake solvers."""

import re
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import gpusplu as gs
from gpusplu.common.installed import install_hint
from gpusplu.distributed import agreement, calls, factor, refinement, solvers
from gpusplu.distributed.agreement import agreed, check_communicator
from gpusplu.distributed.solvers import load_petsc
from gpusplu.errors import (
    EngineUnavailableError,
    HostMemoryError,
    NonFiniteError,
    NotPositiveDefiniteError,
    SolverError,
)
from support.processes import run

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

    name, kind, advice = "made up", "lu", "; try another"

    def __init__(self, A, error, with_care):
        self.A, self.error, self._with_care = A, error, with_care
        self.n_factored = 0

    def factor(self):
        self.n_factored += 1

    def factor_if_missing(self):
        pass

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


def test_a_wrong_column_is_not_forgotten_for_a_right_one(A):
    solver = certified(A, 2.0)
    solver.solve(np.ones(N), 0)
    solver._solver.error = 0.0
    solver.solve(np.ones(N), 0)
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
    with pytest.warns(
        RuntimeWarning, match=r"solve: the solution is not finite, or not accurate: its backward error .*; try another$"
    ):
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
    monkeypatch.setattr(calls, "load_petsc", lambda: library)
    with pytest.raises(EngineUnavailableError, match="cholesky: this PETSc is built for complex numbers"):
        calls.checked_library("cholesky", "mumps", None)
    assert calls.checked_library("ldlt", "mumps", None) is library
    rows = SimpleNamespace(comm=Alone(), count=N, n=N, first=0, dtype=np.dtype(float))
    with pytest.raises(EngineUnavailableError, match="inertia: this PETSc is built for complex numbers"):
        solvers.Mumps(library, System(np.eye(N)), rows, "lu", None).negative_pivots()


class Mumps:
    """PETSc with a MUMPS whose INFOG(1) and INFOG(2) are those of a list, one pair a factorization."""

    ScalarType = np.float64

    def __init__(self, *reports):
        self.reports, self.settings, self.n_begun = list(reports), {}, 0

    def PC(self):
        return self

    def create(self, comm):
        self.n_begun += 1
        return self

    def getFactorMatrix(self):
        return self

    def setMumpsIcntl(self, number, value):
        self.settings[number] = value

    def setUp(self):
        self.now = self.reports.pop(0)

    def getMumpsInfog(self, number):
        return {1: self.now[0], 2: self.now[1], 16: 3}.get(number, 0)

    def __getattr__(self, name):
        return lambda *_: None


def mumps(*reports, kind="lu", memory=10**9):
    petsc = Mumps(*reports)
    rows = SimpleNamespace(comm=Alone(), count=N, n=N, first=0, dtype=np.dtype(float))
    system = SimpleNamespace(comm=rows.comm, matrix=SimpleNamespace(setOption=lambda *_: None))
    petsc.Mat = SimpleNamespace(Option=SimpleNamespace(SPD=1, SYMMETRIC=2))
    return petsc, solvers.Mumps(petsc, system, rows, kind, memory)


@pytest.mark.parametrize(
    ("report", "kind", "error", "message"),
    [
        ((-10, 7), "lu", RuntimeError, "^Factor is exactly singular$"),
        ((-6, 7), "ldlt", RuntimeError, "^Factor is exactly singular$"),
        ((-10, 7), "cholesky", NotPositiveDefiniteError, "not positive definite"),
        ((-40, 7), "cholesky", NotPositiveDefiniteError, "not positive definite"),
        ((-13, -500), "lu", HostMemoryError, "about 4,000,000,000 bytes of memory on a rank and 1,000,000,000 bytes"),
        ((-7, 2_000_000), "lu", HostMemoryError, "about 8,000,000 bytes"),
        ((-19, 10), "lu", HostMemoryError, "about 3,000,000 bytes"),
        ((-51, 5), "lu", SolverError, r"mumps stopped with code -51 \(5\)"),
    ],
)
def test_reports_of_mumps_are_exceptions(report, kind, error, message):
    petsc, solver = mumps(report, (0, 0), kind=kind)
    with pytest.raises(error, match=message):
        solver.factor()
    assert petsc.settings.get(13) == (1 if kind == "ldlt" else None)
    solver.factor_if_missing()
    solver.factor_if_missing()
    assert petsc.n_begun == 2


def test_mumps_gets_more_memory_than_it_estimated():
    petsc, solver = mumps((-9, 100), (-8, 100), (0, 0), memory=None)
    solver.factor()
    assert petsc.settings[14] == 16 * solvers.RELAXATION
    assert petsc.n_begun == 3
    petsc, solver = mumps((-9, 100))
    with pytest.raises(HostMemoryError, match="about 3,000,000 bytes"):
        solver.factor()
    assert petsc.settings[23] == 1000


def test_a_petsc_without_the_solver_is_refused(monkeypatch):
    library = SimpleNamespace(ScalarType=float, Sys=SimpleNamespace(hasExternalPackage=lambda name: False))
    monkeypatch.setattr(calls, "load_petsc", lambda: library)
    with pytest.raises(EngineUnavailableError, match="this PETSc was built without superlu_dist"):
        calls.checked_library("lu", "superlu_dist", None)


def test_without_petsc4py(monkeypatch):
    load_petsc.cache_clear()
    monkeypatch.setitem(sys.modules, "petsc4py", None)
    with pytest.raises(EngineUnavailableError, match=f"need petsc4py: {re.escape(install_hint('distributed'))}, or"):
        gs.distributed.splu(np.eye(3), Alone())


def test_nothing_here_needs_the_core():
    """A cluster's Python may have none."""
    printed = run(
        "import sys; sys.modules.update(dict.fromkeys(('gpusplu._core', 'threadpoolctl')))\n"
        "import gpusplu.distributed; print(gpusplu.distributed.splu.__module__, gpusplu.NonFiniteError.__name__)"
    )
    assert printed == "gpusplu.distributed.calls NonFiniteError\n"
