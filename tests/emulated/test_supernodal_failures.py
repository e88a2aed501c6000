"""The supernodal GPU engine when things go wrong: what raises, what is kept, and when the CPU engine takes over."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.dispatch.report import scale_text
from gpusplu.engines import registry
from support import fake_cupy
from support.small_matrices import EPS, canonical, random_matrix, rhs, spd_matrix
from support.solves import check_error_comes_later, check_launches, check_pickle

pytestmark = pytest.mark.usefixtures("cupy")


def splu(A, **options):
    return gs.splu(A, engine="supernodal", **options)


def cholesky(A, **options):
    return gs.cholesky(A, engine="supernodal", **options)


def accurate(A, factor, b=None):
    b = rhs(A.shape[0], A.dtype) if b is None else b
    x = factor.solve(b)
    assert backward_error(A, np.asarray(x), np.asarray(b)) < 100 * EPS[A.dtype.char]


BOTH = pytest.mark.parametrize(
    ("make", "A"), [(splu, random_matrix()), (cholesky, spd_matrix())], ids=["lu", "cholesky"]
)


@BOTH
def test_refactor_and_solve_cost_one_launch_each(device, make, A):
    factor = make(A)
    values, b = fake_cupy.asarray(A.data), fake_cupy.asarray(rhs(A.shape[0]))
    x = factor.refactor_solve(values, b)
    check_launches(device, factor, values, b)
    assert type(x) is fake_cupy.ndarray
    accurate(A, factor, b)


@BOTH
def test_device_arrays_in_and_out(device, make, A):
    factor = make(A)
    factor.refactor(fake_cupy.asarray(2 * A.data))
    for shape in ((), (1,), (3,), (40,)):
        b = fake_cupy.asarray(rhs(A.shape[0], "d", shape))
        for trans, op in (("N", A), ("T", A.T), ("H", A.T)):
            x = factor.solve(b, trans)
            assert type(x) is fake_cupy.ndarray
            assert x.flags.f_contiguous
            assert backward_error(2 * op, x.get(), b.get()) < 100 * EPS["d"]
    b = fake_cupy.asarray(rhs(A.shape[0], "D", (2,)))
    x = factor.solve(b)
    assert x.dtype == "D"
    assert backward_error(2 * A, x.get(), b.get()) < 100 * EPS["d"]
    single = fake_cupy.asarray(rhs(A.shape[0], "f"))
    assert factor.solve(single).dtype == "d"


@BOTH
def test_arrays_of_the_wrong_kind(device, make, A):
    factor = make(A)
    with pytest.raises(ValueError, match=f"values has 3 entries, A.data had {A.nnz}"):
        factor.refactor(fake_cupy.asarray(np.ones(3)))
    with pytest.raises(TypeError, match="Cannot cast array data from dtype"):
        factor.refactor(fake_cupy.asarray(A.data.astype("D")))
    with pytest.raises(ValueError, match="b is of incompatible size"):
        factor.solve(fake_cupy.asarray(np.ones(3)))
    with pytest.raises(ValueError, match="trans must be N, T, or H"):
        factor.solve(fake_cupy.asarray(rhs(A.shape[0])), "X")
    accurate(A, factor)
    single = make(A.astype("f"))
    with pytest.raises(TypeError, match="Cannot cast array data from dtype"):
        single.solve(fake_cupy.asarray(rhs(A.shape[0])))


def test_duplicates_are_summed_on_the_device(device):
    A = random_matrix()
    coo = A.tocoo()
    doubled = sp.coo_array(
        (
            np.concatenate((coo.data, coo.data)),
            (np.concatenate((coo.row, coo.row)), np.concatenate((coo.col, coo.col))),
        ),
        shape=A.shape,
    )
    with pytest.warns(sp.SparseEfficiencyWarning):
        factor = splu(doubled)
    accurate(2 * A, factor)
    factor.refactor(fake_cupy.asarray(3 * doubled.data))
    accurate(6 * A, factor)
    factor.refactor(doubled.data)
    accurate(2 * A, factor)


@pytest.mark.parametrize("dtype", "dD")
def test_one_triangle(device, dtype):
    A = spd_matrix(50, dtype)
    lower = sp.csc_array(sp.tril(A))
    factor = cholesky(lower)
    accurate(A, factor)
    factor.refactor(fake_cupy.asarray(2 * lower.data))
    accurate(2 * A, factor)


@pytest.mark.parametrize("on_device", [False, True])
@BOTH
def test_values_that_are_not_finite(device, make, A, on_device):
    factor = make(A)
    values = A.data.copy()
    values[5] = np.nan
    error = pytest.raises(gs.NonFiniteError, match=r"A\[\d+, \d+\] is nan")
    if on_device:
        check_error_comes_later(fake_cupy, factor, A, values, error, np.asarray)
    else:
        with error:
            factor.refactor(values)
    accurate(A, factor)
    assert factor.stats.n_refactor == 0


def test_what_is_wrong_shows_at_the_next_refactor(device):
    A = random_matrix()
    factor = splu(A)
    values = A.data.copy()
    values[5] = np.inf
    factor.refactor(fake_cupy.asarray(values))
    with pytest.raises(gs.NonFiniteError):
        factor.refactor(fake_cupy.asarray(A.data))
    accurate(A, factor)


def singular():
    A = random_matrix().tolil()
    A[:, 7] = 2 * A[:, [3]]
    return canonical(A.tocsc())


def test_singular_matrix(device):
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        splu(singular())
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        splu(sp.csc_array(([1.0, 1.0], ([0, 0], [0, 1])), shape=(2, 2)))


def test_singular_values_keep_the_factor_before(device):
    A = random_matrix()
    factor = splu(A)
    values = A.data.copy()
    values[A.indptr[4] : A.indptr[5]] = 0
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        factor.refactor(values)
    accurate(A, factor)
    factor.refactor(fake_cupy.asarray(values))
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        factor.solve(rhs(A.shape[0]))
    accurate(A, factor)
    factor.refactor(2 * A.data)
    accurate(2 * A, factor)


@pytest.mark.parametrize("on_device", [False, True])
def test_not_positive_definite(device, on_device):
    A = spd_matrix()
    indefinite = A.copy()
    indefinite.setdiag(A.diagonal() - np.where(np.arange(50) == 20, 1e3, 0))
    expected = pytest.raises(gs.NotPositiveDefiniteError)
    with expected as on_cpu:
        gs.cholesky(indefinite, engine="cpu", ordering="amd")
    with expected as found:
        cholesky(indefinite, ordering="amd")
    assert (found.value.column, str(found.value)) == (on_cpu.value.column, str(on_cpu.value))
    factor = cholesky(A)
    if on_device:
        check_error_comes_later(fake_cupy, factor, A, indefinite.data, expected, np.asarray)
    else:
        with expected:
            factor.refactor(indefinite.data)
    accurate(A, factor)


def weak_pivots(n=60, seed=2):
    """Needs pivoting across fronts as soon as its values are not those that were matched."""
    rng = np.random.default_rng(seed)
    A = random_matrix(n, seed=seed)
    weak = A.copy()
    weak.data = A.data * 10.0 ** rng.uniform(-12, 0, A.nnz)
    return A, weak


def test_ladder_ends_on_the_cpu(device):
    A, weak = weak_pivots()
    factor = splu(A)
    factor.refactor(weak.data)
    b = rhs(A.shape[0])
    for trans, op in (("N", weak), ("T", weak.T)):
        assert backward_error(op, factor.solve(b, trans), b) < 100 * EPS["d"]
    on_device = fake_cupy.asarray(b)
    assert type(factor.solve(on_device)) is fake_cupy.ndarray
    assert factor.stats.n_refinement > 0 or factor.stats.n_repivoted > 0
    factor.refactor(A.data)
    accurate(A, factor)


def test_cpu_takes_over_where_refinement_fails(device, monkeypatch):
    A = random_matrix()
    factor = splu(A)
    monkeypatch.setattr(type(factor._core._recorded), "backward_error", lambda self: 1.0)
    accurate(A, factor)
    assert factor.stats.n_repivoted == 1
    accurate(A, factor, fake_cupy.asarray(rhs(A.shape[0])))
    assert factor.backward_error < 100 * EPS["d"]
    monkeypatch.undo()


def test_static_pivoting_never_leaves_the_device(device, monkeypatch):
    A = random_matrix()
    factor = splu(A, pivoting="static")
    monkeypatch.setattr(type(factor._core._recorded), "backward_error", lambda self: 1.0)
    with pytest.warns(RuntimeWarning, match="not accurate"):
        factor.solve(rhs(A.shape[0]))
    assert factor.stats.n_repivoted == 0


def test_never_refined_is_not_measured(device):
    A = random_matrix()
    factor = splu(A, refine="never")
    accurate(A, factor)
    assert factor.backward_error is None


def test_partial_pivoting_is_for_the_cpu(device):
    with pytest.raises(gs.EngineUnavailableError, match="pivots inside its fronts only"):
        splu(random_matrix(), pivoting="partial")


def test_device_memory(device):
    A = gallery.poisson(20, 20)
    with pytest.raises(gs.DeviceMemoryError) as error:
        splu(A, device_memory=1000)
    assert error.value.free == 1000
    assert error.value.needed > 1000
    device.memory_bytes = device.used + 20_000
    with pytest.raises(gs.DeviceMemoryError):
        cholesky(A)


@BOTH
def test_memory_is_given_back(device, make, A):
    factor = make(A)
    factor.refactor(fake_cupy.asarray(A.data))
    used = device.used
    for _ in range(3):
        factor.refactor(A.data)
        factor.solve(rhs(A.shape[0]))
    del factor
    assert device.used < used
    gs.cache_clear()  # its program is remembered with its pattern
    assert device.used == 0


@BOTH
def test_answers_of_the_cpu_engine(device, make, A):
    factor, on_cpu = (
        make(A, ordering="amd"),
        (gs.splu if make is splu else gs.cholesky)(A, engine="cpu", ordering="amd"),
    )
    np.testing.assert_allclose(factor.slogdet(), on_cpu.slogdet())
    assert factor.rcond() == pytest.approx(on_cpu.rcond(), rel=0.5)
    if make is splu:
        product = (factor.L @ factor.U)[factor.perm_r][:, factor.perm_c]
    else:
        product = (factor.L @ factor.L.conj().T)[np.argsort(factor.perm)][:, np.argsort(factor.perm)]
    np.testing.assert_allclose(product.toarray(), A.toarray(), atol=1e-12)
    factor.refactor(fake_cupy.asarray(2 * A.data) if make is splu else 2 * A.data)
    assert factor.slogdet().logabsdet > on_cpu.slogdet().logabsdet


@BOTH
def test_inverse(device, make, A):
    factor = make(A)
    factor.refactor(fake_cupy.asarray(2 * A.data) if make is splu else 2 * A.data)
    inverse = np.linalg.inv(2 * A.toarray())
    np.testing.assert_allclose(factor.inverse_diagonal(), inverse.diagonal(), atol=1e-12)
    np.testing.assert_allclose(factor.trace_inverse(A.T), np.trace(inverse @ A.T), rtol=1e-12)
    Z = factor.selected_inverse().tocoo()
    assert Z.nnz == A.nnz
    np.testing.assert_allclose(Z.data, inverse[Z.row, Z.col], atol=1e-12)
    assert factor.selected_inverse(pattern="LU").nnz > A.nnz


@BOTH
def test_pickle(device, make, A):
    factor = make(A)
    assert factor.engine == "supernodal"
    check_pickle(factor, A)


def test_explain_compares_with_the_memory_of_the_device(device, monkeypatch):
    A = spd_matrix()
    assert "on a device: one GPU is enough" in gs.explain(A, device=0, cholesky=True)
    symbolic = gs.analyze(A, device=0, cholesky=True)
    problem, analysis = symbolic.parts()
    structure = problem.structure(analysis.core)
    monkeypatch.setattr(device, "free_bytes", lambda: 7000)
    assert "more than 7 kB: one GPU through which" in scale_text(symbolic.choice.request, structure)


def test_stats_and_explain(device):
    A = random_matrix()
    factor = splu(A)
    text = factor.explain()
    assert "supernodal: asked for by name" in text
    factor.solve(rhs(A.shape[0]))
    stats = factor.stats
    assert stats.engine == "supernodal"
    assert stats.method == "front"
    assert stats.bytes > 0
    assert {"analyze", "plan", "factor", "refactor", "solve"} <= set(stats.seconds)
    assert "device=0 was asked for" in gs.splu(A, device=0).explain()
    assert "supernodal" in gs.explain(A, engine="supernodal")


def test_empty_and_one(device):
    one = splu(sp.csc_array([[4.0]]))
    assert one.solve(np.array([2.0])) == 0.5
    empty = splu(sp.csc_array((0, 0)))
    assert empty.solve(np.empty(0)).shape == (0,)
    factor = splu(random_matrix())
    assert factor.solve(np.empty((60, 0))).shape == (60, 0)


def test_doctor_tests_the_device(device):
    from gpusplu.cli import doctor

    assert ("supernodal", "available") in doctor.engines()
    tests = dict(doctor.self_tests())
    error, limit = tests["splu float64 supernodal"]()
    assert error <= limit
    assert len(tests) == 36
    assert {f"splu float32 {engine}" for engine in registry.names() if registry.named(engine).kinds == ("lu",)} <= set(
        tests
    )


def block_beside_large(block):
    """A grid, and a small block times 2^-46 that no norm of the whole shows."""
    grid = gallery.named("poisson:6x6")
    A = canonical(sp.block_diag([grid, 2.0**-46 * block]))
    b = np.concatenate([np.ones(grid.shape[0]), 2.0**-46 * (block @ np.ones(block.shape[0]))])
    return A, b, slice(grid.shape[0], None)


def test_perturbed_pivots_in_a_small_block_are_refined(device):
    rng = np.random.default_rng(0)
    block = rng.uniform(1, 2, (40, 40)) + 40 * np.eye(40)
    factor = splu(block_beside_large(block)[0])
    block[:16, :16] *= 1e-10  # the pivots of the first tile
    A, b, rows = block_beside_large(block)
    factor.refactor(A.data)
    x = factor.solve(b)
    assert factor.stats.n_perturbed > 0
    assert factor.stats.n_refinement > 0
    assert factor.stats.n_repivoted == 0
    assert abs(x[rows] - 1).max() < 1e-9
    x = factor.solve(fake_cupy.asarray(np.stack((b, -b), axis=1).copy(order="F")))
    assert abs(abs(x.get()[rows]) - 1).max() < 1e-9


def test_perturbed_pivots_that_refinement_cannot_mend_in_a_small_block(device):
    """A perturbation much larger than the smallest singular values: the step of refinement shows it."""
    rng = np.random.default_rng(0)
    block = rng.uniform(1, 2, (40, 40)) + 40 * np.eye(40)
    factor = splu(block_beside_large(block)[0])
    block[:16, :16] *= 1e-10
    block[16:, :] *= 1e-10
    A, b, rows = block_beside_large(block)
    factor.refactor(A.data)
    x = factor.solve(b)
    assert factor.stats.n_repivoted == 1
    assert abs(x[rows] - 1).max() < 1e-2  # the condition number is 1e13
