"""LDL^T on an emulated device when things go wrong: what the CPU engine is asked for, what raises, and what is kept."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.engines.supernodal import memory as front_memory
from gpusplu.engines.supernodal.plan import make_plan
from support.small_matrices import EPS, canonical, phased, rhs
from support.solves import check_error_comes_later, check_pickle, check_solves

pytestmark = pytest.mark.usefixtures("cupy", "device")


def ldlt(A, **options):
    return gs.ldlt(A, engine="supernodal", **options)


def saddle(seed=0, n=40, m=15):
    rng = np.random.default_rng(seed)
    H, J = sp.random_array((n, n), density=0.1, rng=rng), sp.random_array((m, n), density=0.1, rng=rng)
    H = H + H.T + sp.diags_array(rng.uniform(-1, 3, n))
    J = J + sp.eye_array(m, n)
    return canonical(sp.block_array([[H, J.T], [J, None]]))


def whole(B):
    n = B.shape[0]
    return sp.csc_array((B.ravel(order="F"), np.tile(np.arange(n), n), n * np.arange(n + 1)), shape=(n, n))


@pytest.fixture
def blocks(monkeypatch):
    """Fronts of more than four rows are a block's."""

    def planned(cores, *arguments):
        plan = make_plan(cores[0], *arguments, warp_rows=4, small_rows=0, block_rows=240)
        return cores[0], plan, [0.0] * len(cores)

    monkeypatch.setattr(front_memory, "make_best_plan", planned)


def test_the_device_goes_on_with_delayed_columns(blocks):
    A = phased(gallery.stokes(9, 8), "D", True)
    assert gs.ldlt(A, engine="cpu").stats.n_delayed == 1
    factor = ldlt(A)
    assert factor.stats.n_repivoted == 1 and not factor._core._on_cpu
    check_solves(A, factor)
    factor.refactor(2 * A.data)
    check_solves(2 * A, factor)
    assert factor.stats.n_repivoted == 1 and not factor._core._on_cpu
    assert factor.inertia() == (127, 71, 0)


@pytest.mark.parametrize("m", [3, 20, 40])
def test_the_device_takes_over_an_order_of_pivots(m):
    """Values for which the first panel of the order is all zeros, which is no good block: partners are behind it."""
    B = np.random.default_rng(m).standard_normal((m, m)) + 3 * np.eye(m)
    A = whole(np.block([[np.zeros((m, m)), B], [B.T, np.zeros((m, m))]]))
    factor = ldlt(whole(np.eye(2 * m)), ordering="natural")
    factor.refactor(A.data)
    check_solves(A, factor)
    assert factor.stats.n_repivoted == int(m > 8) and not factor._core._on_cpu
    assert factor.inertia() == (m, m, 0)
    factor.refactor(-A.data)
    check_solves(canonical(-A), factor)
    assert factor.stats.n_repivoted == int(m > 8)


def test_lu_takes_over_for_single_values():
    """Values of which one triangle is another matrix's, which only an engine can be given."""
    A, b = gallery.kkt(60, 20), rhs(80)
    factor = ldlt(A)
    lopsided = sp.csc_array(sp.tril(A) + 3 * sp.triu(A, 1))
    factor._core.refactor(lopsided.data, None, True)
    assert backward_error(lopsided, factor.solve(b), b) < 100 * EPS["d"]
    assert factor.stats.method == "column" and factor.stats.n_repivoted > 0
    for ask in (lambda: factor.L, lambda: factor.D, lambda: factor.perm):
        with pytest.raises(gs.NoSymmetricFactorError):
            ask()
    factor.refactor(A.data)
    check_solves(A, factor)
    assert factor.stats.method == "front" and factor.inertia() == (60, 20, 0)
    assert abs(factor.L @ factor.D @ factor.L.T - A[factor.perm][:, factor.perm]).max() < 1e-12 * abs(A).max()


def test_a_singular_matrix_leaves_the_factor_as_it_was():
    A = saddle()
    factor = ldlt(A)
    rows, columns = A.indices, np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    for values in (0 * A.data, np.where((rows == 3) | (columns == 3), 0, A.data)):
        with pytest.raises(RuntimeError, match="Factor is exactly singular"):
            factor.refactor(values)
        check_solves(A, factor)
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        ldlt(sp.csc_array(np.ones((4, 4))))


@pytest.mark.parametrize("on_device", [False, True])
def test_values_that_are_not_finite(cupy, on_device):
    A = saddle()
    factor, values = ldlt(A), A.data.copy()
    values[5] = np.nan
    error = pytest.raises(gs.NonFiniteError, match=r"A\[\d+, \d+\] is nan")
    if on_device:
        check_error_comes_later(cupy, factor, A, values, error, np.asarray)
    else:
        with error:
            factor.refactor(values)
    check_solves(A, factor)


def test_values_on_the_device_of_one_triangle(cupy):
    A = saddle()
    lower = sp.csc_array(sp.tril(A))
    factor = ldlt(lower)
    factor.refactor(cupy.asarray(-2 * lower.data))
    check_solves(canonical(-2 * A), factor, put=lambda b: cupy.asarray(np.asfortranarray(b)))
    x = factor.refactor_solve(cupy.asarray(lower.data), cupy.asarray(rhs(55)))
    assert backward_error(A, x.get(), rhs(55)) < 100 * EPS["d"]
    factor.refactor(cupy.asarray(3 * lower.data), check="later")
    x = factor.solve(cupy.asarray(rhs(55)), check="later")
    assert factor.check() < 100 * EPS["d"]
    assert backward_error(3 * A, x.get(), rhs(55)) < 100 * EPS["d"]


def test_an_inertia_that_the_device_is_not_certain_of_is_the_cpu_engines():
    rng = np.random.default_rng(3)
    Q, _ = np.linalg.qr(rng.standard_normal((30, 30)))
    eigenvalues = np.concatenate((np.ones(15), -np.ones(14), [1e-14]))
    B = Q * eigenvalues @ Q.T
    factor = ldlt(whole((B + B.T) / 2))
    assert factor.inertia() is None and "too close to a singular matrix" in factor.inertia_doubt


def test_what_comes_from_the_cpu_engine():
    A = saddle()
    factor, here = ldlt(A), gs.ldlt(A, engine="cpu")
    assert abs(factor.L @ factor.D @ factor.L.T - A[factor.perm][:, factor.perm]).max() < 1e-13
    sign, logarithm = factor.slogdet()
    assert sign == pytest.approx(here.slogdet().sign) and logarithm == pytest.approx(here.slogdet().logabsdet)
    assert not factor._core._on_cpu
    check_pickle(factor, A)


def test_a_device_that_is_asked_for():
    factor = gs.ldlt(saddle(), device=0)
    assert factor.engine == "supernodal" and "asked for" in factor.explain()
