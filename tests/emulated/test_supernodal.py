"""The supernodal GPU engine on an emulated device: fronts of every phase, pivots, determinants, memory, launches."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from contract.cases import with_values
from contract.test_refactor import wild, wild_on
from gpusplu import _core, gallery
from gpusplu.common.timing import backward_error
from gpusplu.engines import registry
from gpusplu.engines.supernodal.program import dependent_launches, diagonal_blocks
from support import fake_cupy
from support.emulated_device import memory_at
from support.front_plans import PHASES
from support.indefinite import check_indefinite
from support.processes import run
from support.small_matrices import EPS, canonical, dtypes, phased, random_matrix, rhs, small_pairs, spd_matrix, whole
from support.solves import check_launches, check_solves

pytestmark = pytest.mark.usefixtures("cupy")

MAKES = {"lu": gs.splu, "cholesky": gs.cholesky, "ldlt": gs.ldlt}
KINDS = pytest.mark.parametrize("kind", MAKES)
MAKE = pytest.mark.parametrize("make", [gs.splu, gs.cholesky], ids=["lu", "cholesky"])
TYPES = pytest.mark.parametrize("dtype", dtypes("dFD"))


def matrix(make):
    return random_matrix() if make is gs.splu else spd_matrix()


def arrow(n):
    """Many fronts below one."""
    A = sp.diags_array(np.full(n, 60.0)).tolil()
    A[-3:, :-3] = A[:-3, -3:] = 0.1
    return A


def star(leaves, width, n, touched):
    """Leaves of `width` columns each that are coupled to `touched` columns of a dense part of order n."""
    rng = np.random.default_rng(5)
    A = np.zeros((leaves * width + n,) * 2)
    A[-n:, -n:] = rng.standard_normal((n, n))
    for k in range(leaves):
        own = np.arange(k * width, (k + 1) * width)
        rows = np.concatenate([own, leaves * width + rng.choice(n, touched, replace=False)])
        A[np.ix_(own, rows)] = rng.standard_normal((width, len(rows)))
        A[np.ix_(rows, own)] = A[np.ix_(own, rows)].T
    return A + np.diag(np.abs(A).sum(axis=1))


def dense(n):
    return np.random.default_rng(n).standard_normal((n, n)) + 4 * n * np.eye(n)


LARGE = PHASES["large"]
OLD = {"shared_memory_bytes": 65536, "arch": 75}
#: A matrix, the classes of its fronts, parameters of the planner that lead to them, and attributes of the device.
FRONTS = {
    "one": (lambda: np.array([[2.0]]), {3}, LARGE, {}),
    "many children": (lambda: arrow(420), {0}, {}, {}),
    "one block": (lambda: dense(100), {2}, {}, {}),
    "blocks": (lambda: gallery.poisson(12, 11), {2}, PHASES["block"], {}),
    "warps and blocks": (lambda: gallery.poisson(12, 11), {1, 2}, PHASES["small"], {}),
    "all": (lambda: gallery.named("circuit:12x12"), {0, 1, 2, 3}, PHASES["mixed"], {}),
    "warps for small fronts": (lambda: gallery.poisson(9, 9, 9), {1, 2}, {"warp_rows": 4}, {"multiprocessors": 1}),
    "large at the top": (lambda: gallery.poisson(7, 7, 7), {0, 1, 3}, {"block_rows": 32}, {}),
    "large": (lambda: gallery.poisson(12, 11), {3}, LARGE, {}),
    "large with many children": (lambda: star(24, 2, 131, 6), {3}, LARGE, {}),
    "large with wide children": (lambda: star(2, 67, 140, 90), {3}, LARGE, {}),
    "pairs of tiles": (lambda: star(2, 70, 200, 140), {3}, LARGE, {"multiprocessors": 1}),
    "large on an old device": (lambda: star(2, 67, 140, 90), {3}, LARGE, OLD),
}


# ---- fronts


@TYPES
@pytest.mark.parametrize("name", FRONTS)
@MAKE
def test_every_class_of_front(device, plan_with, make, name, dtype):
    """Solutions without refinement, for numbers of columns in turn; another order of threads has the same bits."""
    given, phases, parameters, limits = FRONTS[name]
    plans, hermitian = plan_with(**parameters), make is gs.cholesky
    for attribute, value in limits.items():
        setattr(device, attribute, value)
    A, found = phased(given(), dtype, hermitian), []
    if hermitian:
        A = (A + A.conj().T) / 2
        A.setdiag(abs(A).sum(axis=1) + 1)
        A = canonical(A, dtype)
    factor, b = make(A, engine="supernodal", refine="never"), rhs(A.shape[0], dtype, (33,))
    assert set(plans[-1].phase) == phases
    for seed in (0, 3):
        device.seed = seed
        factor.refactor(A.data)
        for trans, count in (("N", 9 if phases == {3} else 33), ("T", 3), ("N", 1), ("H", 1)):
            op = {"N": A, "T": A.T, "H": A.conj().T}[trans]
            found.append(factor.solve(b[:, :count], trans))
            assert backward_error(op, found[-1], b[:, :count]) < 100 * EPS[dtype], (count, trans)
    assert all(np.array_equal(one, other) for one, other in zip(found[:4], found[4:], strict=True))
    assert factor.stats.n_repivoted == factor.stats.n_perturbed == 0


@TYPES
@pytest.mark.parametrize("phases", PHASES)
def test_every_phase_of_ldlt(device, plan_with, phases, dtype):
    plan_with(**PHASES[phases])
    check_indefinite(gallery.named("stokes:9x8"), dtype, True)


@pytest.mark.thorough
@pytest.mark.parametrize("phases", PHASES)
def test_diagonal_blocks_of_ldlt_are_symmetric_to_the_last_bit(device, plan_with, phases):
    plans = plan_with(**PHASES[phases])
    factor = check_indefinite(gallery.named("stokes:9x8"), "D", True)
    buffer = factor._core.commands.buffers.own["factor"]
    entries, covered = memory_at(buffer.pointer, buffer.nbytes).view("D"), 0
    for block in diagonal_blocks(plans[-1]):
        order = np.arange(block["order"])
        D = entries[block["at"] + order[:, None] + block["ld"] * order]
        assert np.array_equal(D, D.conj().T)
        covered += len(order)
    assert covered == 198


def test_every_solve_has_a_tag_of_its_own(device, plan_with):
    """Otherwise a solve would take values that fronts passed to each other in the solve before."""
    blocks = sp.kron(sp.eye_array(3), np.ones((100, 100)))
    border = np.ones((300, 50))
    large = canonical(sp.block_array([[blocks, border], [border.T, np.ones((50, 50))]]) + 3000 * sp.eye_array(350))
    plans = plan_with(warp_rows=8, block_rows=16)
    for A, ordering, only_large in ((large, "natural", True), (gallery.poisson(12, 11), "nd", False)):
        factor = gs.splu(A, engine="supernodal", ordering=ordering, refine="never")
        assert (np.asarray(plans[-1].phase) == 3).all() == only_large
        for seed in range(3):
            b = rhs(A.shape[0], seed=seed)
            assert backward_error(A, factor.solve(b), b) < 100 * EPS["d"]
        counters = factor._core.commands.buffers.vectors(1).own["counters"]
        assert memory_at(counters.pointer, 4).view(np.uint32)[0] == 3  # SOLVES of solve.cuh


@pytest.mark.parametrize("make", [gs.splu, gs.cholesky])
def test_segments(device, plan_with, make):
    """Segments of fronts share memory of contribution blocks."""
    plans = plan_with(warp_rows=8, block_rows=16)
    A = canonical(gallery.poisson(20, 20))
    whole_bytes = make(A, engine="supernodal", ordering="nd").stats.bytes
    gs.cache_clear()
    factor = make(A, engine="supernodal", ordering="nd", device_memory=int(0.9 * whole_bytes))
    plan = plans[-1]
    assert len(plan.segment_ptr) > 3 and sum(plan.launches["phase"] == 3) > 1
    first = np.isin(np.arange(len(plan.launches)), plan.launch_ptr)  # of a segment: it waits for all before
    np.testing.assert_array_equal(dependent_launches(plan), ~first)
    for scale in (1, 3):  # the counters of the large fronts live on from one to the next
        factor.refactor(scale * A.data)
        check_solves(scale * A, factor)


# ---- pivots


def test_perturbed_pivots_in_a_small_block(device):
    """A block times 2^-46 that no norm of the whole shows; of a large perturbation the step of refinement tells."""
    grid, rng = gallery.poisson(6, 6), np.random.default_rng(0)
    block = rng.uniform(1, 2, (40, 40)) + 40 * np.eye(40)

    def system():
        A = canonical(sp.block_diag([grid, 2.0**-46 * block]))
        return A, np.concatenate([np.ones(36), 2.0**-46 * (block @ np.ones(40))])

    factor = gs.splu(system()[0], engine="supernodal")
    block[:16, :16] *= 1e-10  # the pivots of the first tile
    A, b = system()
    factor.refactor(A.data)
    x = factor.solve(b)
    assert factor.stats.n_perturbed > 0 and factor.stats.n_refinement > 0 and factor.stats.n_repivoted == 0
    assert abs(x[36:] - 1).max() < 1e-9
    x = factor.solve(fake_cupy.asarray(np.stack((b, -b), axis=1).copy(order="F")))
    assert abs(abs(x.get()[36:]) - 1).max() < 1e-9
    block[16:, :] *= 1e-10
    A, b = system()
    factor.refactor(A.data)
    x = factor.solve(b)
    assert factor.stats.n_repivoted == 1 and abs(x[36:] - 1).max() < 1e-2  # the condition number is 1e13


@pytest.mark.parametrize(("phases", "pivoting"), [(name, "auto") for name in PHASES] + [("mixed", "static")])
def test_perturbed_pivots_are_kept(device, plan_with, phases, pivoting):
    plan_with(**PHASES[phases])
    A = small_pairs()
    factor = gs.splu(A, engine="supernodal", pivoting=pivoting)
    factor.refactor(2 * A.data)
    assert abs(2 * factor.solve(A @ np.ones(A.shape[0])) - 1).max() < 1e-11
    stats = factor.stats
    assert stats.n_perturbed == 20 and stats.n_refinement > 0
    assert stats.n_reanalyzed == stats.n_repivoted == 0


@pytest.mark.parametrize("phases", PHASES)
def test_pivots_are_chosen_inside_blocks(device, plan_with, phases):
    """Where no entry of the diagonal can be one."""
    plan_with(**PHASES[phases])
    for n in (16, 90):
        B = 1e-2 * np.random.default_rng(n).standard_normal((n, n)) + np.kron(np.eye(n // 2), [[0, 3], [2, 0]])
        np.fill_diagonal(B, 0)
        factor = gs.splu(whole(np.eye(n)), engine="supernodal", ordering="natural", refine="never")
        factor.refactor(B.ravel(order="F"))
        b = rhs(n)
        assert backward_error(B, factor.solve(b), b) < 100 * EPS["d"]
        assert factor.stats.n_repivoted == factor.stats.n_perturbed == 0


@pytest.mark.parametrize("phases", PHASES)
def test_values_that_a_class_of_fronts_cannot_factor(device, plan_with, phases):
    """Large multipliers, and pivots that are not positive."""
    plan_with(**PHASES[phases])
    A, b = canonical(gallery.poisson(12, 11)), rhs(132)
    lu, definite = gs.splu(A, engine="supernodal"), gs.cholesky(A, engine="supernodal")
    hard = canonical(A - sp.diags_array(A.diagonal() * (1 - 1e-5)))
    lu.refactor(hard.data)
    assert lu.stats.max_multiplier > 64 or phases == "large"  # whose kernels do not look
    assert backward_error(hard, lu.solve(b), b) < 100 * EPS["d"]
    with pytest.raises(gs.NotPositiveDefiniteError):
        definite.refactor(-A.data)


@pytest.mark.parametrize("name", ["kkt:60x25x4", "stokes:6x5", "mixed:6x5", "helmholtz:12x11"])
def test_indefinite(device, name):
    check_indefinite(gallery.named(name), "d", True)


@pytest.mark.parametrize("phases", ["block", "large"])
def test_panels_do_not_part_pairs(device, plan_with, phases):
    """A column alone, and pairs with nothing else beside them: a panel with half of one would be singular."""
    plan_with(**PHASES[phases])
    n = 81
    B = np.zeros((n, n))
    B[0, 0] = 1
    B[np.arange(1, n, 2), np.arange(2, n, 2)] = B[np.arange(2, n, 2), np.arange(1, n, 2)] = 2
    factor = gs.ldlt(whole(B), engine="supernodal", ordering="natural")
    b = np.arange(1.0, n + 1)
    np.testing.assert_array_equal(B @ factor.solve(b), b)
    assert factor.stats.n_repivoted == 0 and factor.inertia() == (41, 40, 0)


@pytest.mark.thorough
def test_the_device_goes_on_with_delayed_columns(device, plan_with):
    plan_with(warp_rows=4, small_rows=0, block_rows=240)
    A = phased(gallery.stokes(9, 8), "D", True)
    assert gs.ldlt(A, engine="cpu").stats.n_delayed == 1
    factor = gs.ldlt(A, engine="supernodal")
    for scale in (1, 2):
        factor.refactor(scale * A.data)
        check_solves(scale * A, factor)
        assert factor.stats.n_repivoted == 1 and factor.inertia() == (127, 71, 0)


@pytest.mark.parametrize("m", [3, 20, 40])
def test_the_device_takes_over_an_order_of_pivots(device, m):
    """Values for which the first panel of the order is all zeros, which is no good block: partners are behind it."""
    B = np.random.default_rng(m).standard_normal((m, m)) + 3 * np.eye(m)
    A = whole(np.block([[np.zeros((m, m)), B], [B.T, np.zeros((m, m))]]))
    factor = gs.ldlt(whole(np.eye(2 * m)), engine="supernodal", ordering="natural")
    for scale in (1, -1):
        factor.refactor(scale * A.data)
        check_solves(canonical(scale * A), factor)
        assert factor.stats.n_repivoted == int(m > 8) and factor.inertia() == (m, m, 0)


def test_an_inertia_that_the_device_is_not_certain_of_is_the_cpu_engines(device):
    Q, _ = np.linalg.qr(np.random.default_rng(3).standard_normal((30, 30)))
    B = Q * np.concatenate((np.ones(15), -np.ones(14), [1e-14])) @ Q.T
    factor = gs.ldlt(whole((B + B.T) / 2), engine="supernodal")
    assert factor.inertia() is None and "too close to a singular matrix" in factor.inertia_doubt


# ---- determinants


@pytest.mark.parametrize("n", [33, 180])
@MAKE
def test_determinants_of_one_front(device, make, n):
    """Those of the processor, and condition numbers, by the device alone."""
    A = np.random.default_rng(0).standard_normal((n, n))
    A = canonical(A if make is gs.splu else A @ A.T + np.eye(n))
    known, factor = (make(A, engine=engine) for engine in ("cpu", "supernodal"))
    plan = factor._core.commands.program.plan
    assert (plan.phase.tolist() == [3]) == (n == 180)
    assert diagonal_blocks(plan)["order"].sum() == n
    for scale in (1, 3):
        for one in (known, factor):
            one.refactor(scale * A.data)
        factor.solve(rhs(n))
        had_cpu, error = factor._core._cpu, factor.backward_error
        assert factor.slogdet().sign == known.slogdet().sign
        np.testing.assert_allclose(factor.slogdet().logabsdet, known.slogdet().logabsdet, rtol=1e3 * EPS["d"])
        np.testing.assert_allclose(factor.rcond(), known.rcond(), rtol=1e-6)
        assert factor._core._cpu is had_cpu and factor.backward_error == error
        assert factor._core._host.name != "CURRENT" or scale == 1


def test_determinants_with_perturbed_pivots_are_left_to_the_processor(device):
    """With them it is another matrix that was factored."""
    A = small_pairs()
    factor, known = gs.splu(A, engine="supernodal"), np.linalg.slogdet(A.toarray())
    assert factor.stats.n_perturbed > 0 == factor.stats.n_repivoted
    assert factor.slogdet().sign == known[0]
    np.testing.assert_allclose(factor.slogdet().logabsdet, known[1], rtol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_parity(n):
    perm = np.random.default_rng(n).permutation(n).astype(np.int32)
    assert _core.parity(perm) == round(np.linalg.det(np.eye(n)[perm]))
    with pytest.raises(ValueError, match="permutation"):
        _core.parity(np.full(n, n, np.int32))


# ---- memory, launches, and what is said


@MAKE
def test_memory_is_given_back(device, make):
    A = matrix(make)
    factor = make(A, engine="supernodal")
    used = device.used
    for _ in range(3):
        factor.refactor(A.data)
        factor.solve(rhs(A.shape[0]))
    del factor
    assert device.used < used
    gs.cache_clear()  # its program is remembered with its pattern
    assert device.used == 0
    device.memory_bytes = 10_000
    with pytest.raises(gs.DeviceMemoryError):
        make(gallery.poisson(20, 20), engine="supernodal")


@MAKE
def test_refactor_and_solve_cost_one_launch_each(device, make):
    A = matrix(make)
    factor, values, b = make(A, engine="supernodal"), fake_cupy.asarray(A.data), fake_cupy.asarray(rhs(A.shape[0]))
    factor.refactor_solve(values, b)
    check_launches(device, factor, values, b)


def test_the_factor_is_made_in_single_precision(device):
    gs.cholesky(spd_matrix(), engine="supernodal", precision="mixed")
    assert not any(scalar == "d" for file, scalar, _ in device.loaded if file.startswith("fronts"))
    assert any(scalar == "f" for file, scalar, _ in device.loaded if file.startswith("fronts"))


def test_auto_takes_mixed_precision_where_double_is_slow(device):
    A = spd_matrix()
    assert "precision" not in gs.cholesky(A, device=0, precision="auto").stats
    device.double_ratio = 32
    slow = gs.cholesky(A, device=0, precision="auto", deterministic=True)
    assert slow.stats.precision == "mixed"
    assert "32 times as fast" in slow.explain()
    gs.cache_clear()
    for _ in range(2):
        assert gs.cholesky(A, device=0, precision="auto").stats.precision == "mixed"
    assert gs.cache_info().hits == 1
    assert "precision" not in gs.cholesky(A, device=0).stats
    assert "precision" not in gs.cholesky(A, engine="cpu", precision="auto").stats


def test_explain_compares_with_the_memory_of_the_device(device, monkeypatch):
    A = spd_matrix()
    assert "on a device: one GPU is enough" in gs.explain(A, device=0, cholesky=True)
    monkeypatch.setattr(device, "free_bytes", lambda: 7000)
    assert "streaming through one GPU" in gs.explain(A, device=0, cholesky=True)


def test_doctor_tests_the_device(device):
    from gpusplu.cli import doctor

    assert ("supernodal", "available") in doctor.engines()
    tests = dict(doctor.self_tests())
    error, limit = tests["splu float64 supernodal"]()
    assert error <= limit and len(tests) == 36
    lu_only = [name for name in registry.names() if registry.named(name).capabilities.kinds == ("lu",)]
    assert {f"splu float32 {engine}" for engine in lu_only} <= set(tests)


def test_pickles_in_a_process_without_cupy(device, tmp_path):
    (tmp_path / "factor.pickle").write_bytes(pickle.dumps(gs.splu(random_matrix(), engine="supernodal")))
    code = f"""
import pickle, sys
sys.modules["cupy"] = None
with open({str(tmp_path / "factor.pickle")!r}, "rb") as file:
    factor = pickle.load(file)
print(factor.engine, "GPU engines need CuPy" in factor.explain())
"""
    assert run(code) == "cpu True\n"


@pytest.mark.parametrize("on_device", [False, True])
def test_lu_takes_over_where_no_symmetric_pivots_help(cupy, device, on_device):
    """Hermitian values of very different size; LDL^T is back with the next ones."""
    A, put = gs.gallery.stokes(4, 4), cupy.asarray if on_device else np.asarray
    b = np.ones(A.shape[0])
    factor, inertia = gs.ldlt(A, engine="supernodal"), gs.ldlt(A, engine="cpu").inertia()
    other = with_values(A, wild_on(A, wild(A, "ldlt", seed=18)))
    factor.refactor(put(other.data))
    assert backward_error(other, factor.solve(b), b) < 100 * EPS["d"]
    assert factor.stats.method == "column" and factor.engine == "supernodal"
    for ask in (lambda: factor.L, lambda: factor.D, lambda: factor.perm):
        with pytest.raises(gs.NoSymmetricFactorError, match="LU with partial pivoting"):
            ask()
    factor.refactor(put(A.data))
    assert backward_error(A, factor.solve(b), b) < 100 * EPS["d"]
    assert factor.stats.method == "front" and factor.inertia() == inertia
