"""The glu engine from end to end on an emulated device, and pivots that are chosen anew by the CPU engine."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.common.timing import backward_error
from gpusplu.engines.device.recorded import Recorded
from gpusplu.engines.glu.program import KERNELS, MODES
from gpusplu.errors import DeviceMemoryError, EngineUnavailableError
from support import fake_cupy
from support.column_engines import MATRICES, check_mode, circuit, glu, harder, on_device
from support.small_matrices import EPS, canonical, random_matrix, rhs, unlike
from support.solves import check_solves

pytestmark = pytest.mark.usefixtures("cupy")


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", MATRICES)
def test_factor_solve_refactor(device, name, dtype):
    A = MATRICES[name](dtype)
    factor = glu(A)
    assert factor.engine == "glu"
    check_solves(A, factor, ((), (1,), (6,)))
    scaled = A.copy()
    scaled.data *= 3
    device.counts.clear()
    factor.refactor(scaled.data)
    assert device.counts == {**device.counts, "replay": 1, "assemble_glu": 1, "finish_glu": 1}
    check_solves(scaled, factor)
    assert factor.stats.n_refactor == 1
    assert factor.stats.n_repivoted == 0
    assert on_device(factor)
    assert "glu: asked for by name" in factor.explain()


def test_pivots_are_those_of_the_factor_and_not_of_the_triangles(device):
    A = unlike("d", "entries", 12, 3)
    cpu, _ = gs.splu(A, engine="cpu").parts()
    assert not np.array_equal(cpu.row_perm, cpu.pivot_rows)
    factor = glu(A)
    factor.refactor(A.data)
    assert factor.stats.n_repivoted == 0
    assert on_device(factor)


@pytest.mark.parametrize("mode", MODES)
def test_forced_modes(device, mode):
    check_mode(circuit("d"), mode, 0, [()])
    launches = dict(zip(MODES, KERNELS, strict=True))
    assert {name for name in device.counts if name.startswith("update")} == {launches[mode]}
    assert device.counts[launches[mode]] == 1 if mode == "batch" else device.counts[launches[mode]] > 1


@pytest.mark.parametrize("ordering", ["amd", "nd", "natural", "user"])
def test_orderings(device, ordering):
    A = circuit("d")
    perm = np.random.default_rng(0).permutation(A.shape[0]) if ordering == "user" else ordering
    factor = glu(A, ordering=perm)
    assert factor.stats.ordering == ordering
    check_solves(A, factor)
    assert on_device(factor)


def test_factors_are_those_of_the_cpu_engine(device):
    A = random_matrix(40)
    factor = glu(A)
    L, U = factor.L.toarray(), factor.U.toarray()
    np.testing.assert_allclose((L @ U)[factor.perm_r][:, factor.perm_c], A.toarray(), atol=1e-12)
    assert factor.slogdet().logabsdet == pytest.approx(np.linalg.slogdet(A.toarray())[1])
    assert factor.nnz == factor._core._recorded.program.plan.nnz + 40


@pytest.mark.parametrize("values_on_device", [False, True])
def test_bad_pivots_are_chosen_anew_and_the_device_goes_on(device, values_on_device):
    A = random_matrix(60)
    B = harder(A)
    factor = glu(A)
    before = factor._core._recorded.program
    factor.refactor(fake_cupy.asarray(B.data) if values_on_device else B.data)
    check_solves(B, factor)
    after = factor._core._recorded.program
    assert after is not before
    assert (after.plan.row_perm != before.plan.row_perm).any()
    assert on_device(factor)
    assert factor.stats.n_repivoted == 1
    B.data *= 1.01
    factor.refactor(B.data)
    check_solves(B, factor)
    assert factor.stats.n_repivoted == 1
    assert factor._core._recorded.program is after


def test_pivots_that_are_chosen_anew_are_told(device, caplog):
    caplog.set_level("INFO", "gpusplu")
    A = random_matrix(60)
    factor = glu(A)
    factor.refactor(harder(A).data)
    assert caplog.messages[-1] == "pivots chosen anew by the processor; the device goes on with them"
    caplog.clear()
    factor.refactor(fake_cupy.asarray(A.data))  # nobody waits for it
    assert caplog.messages == [] and factor._core.held._pending
    check_solves(A, factor)


def test_bad_pivots_in_the_middle_of_a_step(device):
    A = random_matrix(60)
    B, b = harder(A), rhs(60)
    factor = glu(A)
    x = factor.refactor_solve(fake_cupy.asarray(B.data), fake_cupy.asarray(b))
    assert backward_error(B, x.get(), b) < 100 * EPS["d"]
    assert factor.stats.n_repivoted == 1
    assert on_device(factor)


def test_inaccurate_solves_choose_pivots_anew(device):
    A = random_matrix(60)
    B, b = harder(A), rhs(60)
    factor = glu(A)
    before = factor._core._recorded.program
    before.growth_bound = np.inf  # only the backward error can tell
    factor.refactor(B.data)
    assert factor.stats.n_repivoted == 0
    assert backward_error(B, factor.solve(b), b) < 100 * EPS["d"]
    assert factor.stats.n_repivoted == 1
    assert factor._core._recorded.program is not before
    assert on_device(factor)


def test_cpu_engine_solves_where_its_pivots_are_no_better(device, monkeypatch):
    A = random_matrix(60)
    factor = glu(A)
    monkeypatch.setattr(Recorded, "backward_error", lambda self: 1.0)  # nothing is good enough
    check_solves(A, factor)
    assert factor.stats.n_repivoted == 1
    assert not on_device(factor)


def test_cpu_engine_solves_where_a_new_plan_does_not_fit(device):
    A = random_matrix(60)
    B = harder(A)
    factor = glu(A)
    device.memory_bytes = device.used + 1000
    factor.refactor(B.data)
    check_solves(B, factor)
    assert not on_device(factor)
    device.memory_bytes += 1 << 30
    factor.refactor(A.data)
    check_solves(A, factor)
    assert on_device(factor)


def test_singular_values_are_refused_and_the_factor_kept(device):
    A = random_matrix(30)
    factor = glu(A)
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        factor.refactor(np.zeros(A.nnz))
    check_solves(A, factor)
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        glu(canonical(sp.csc_array(np.ones((3, 3)))))


def test_cholesky_is_refused(device):
    with pytest.raises(EngineUnavailableError, match="engine='glu' is for LU"):
        gs.cholesky(canonical(sp.eye_array(4)), engine="glu")


def test_memory_is_known_before_it_is_taken(device):
    A = circuit("d")
    factor = glu(A)
    factor.solve(rhs(A.shape[0]))
    needed = factor._core._recorded.program.needed_bytes
    assert 0.9 * needed < factor.stats.bytes <= needed
    with pytest.raises(DeviceMemoryError, match=f"{needed:,} bytes"):
        glu(A, device_memory=needed - 1)
    assert on_device(glu(A, device_memory=needed))
