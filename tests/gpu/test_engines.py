"""Engines on a device with larger and real matrices than tests/contract has, which runs there as well."""

import gc
import os

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.cuda import devices
from gpusplu.engines.glu.program import MODES
from support import halves, indefinite, symmetric_values
from support.analyses import analyze_columns
from support.column_engines import (
    CIRCUITS,
    check_lu_pattern,
    check_mode,
    check_trailing_block,
    check_tuned_alike,
    crisscross,
    on_device,
    sflu,
)
from support.front_plans import limit_between
from support.small_matrices import EPS, canonical, phased, random_matrix, rhs
from support.solves import check_against_cpu, check_same_answers

pytestmark = pytest.mark.gpu

GALLERY = [
    *((name, gs.splu) for name in ("circuit:20x20", "rlc:60x60", "power:40x40", "convdiff:40x40", "convdiff:16")),
    *((name, gs.cholesky) for name in ("poisson:60x60", "poisson:16x16x16", "elast:8x8x8")),
    ("elast:8x8x8", gs.splu),
]
REAL_LU = [
    *("1138_bus", "2dcyl1", "add20", "adder_dcop_05", "anemometer1_A1", "bayer10", "case3375wp_nrjac"),
    *("case_ACTIVSg10k_nrjac", "cage8", "faer_matrix_n19168", "fs_183_6", "ibmpg1t_mna_tran", "ibmpg2t_mna_tran"),
    *("memplus", "nnc1374", "orsirr_1", "rajat19", "sherman2", "sherman5", "steam2", "young1c"),
]
REAL_CHOLESKY = [
    *("1138_bus", "Dubcova1", "bcsstk16", "bcsstk18", "bcsstk26", "bodyy4", "cotlap_armadillo", "fv2"),
    *("G3_circuit", "ibmpg2t_spd_tran", "rail_20209_negA"),
]
REAL = [
    *(("supernodal", gs.splu, name) for name in REAL_LU),
    *(("supernodal", gs.cholesky, name) for name in REAL_CHOLESKY),
    *((engine, gs.splu, name) for engine in ("sflu", "crisscross") for name in CIRCUITS),
]
REAL_GLU = ["add20", "adder_dcop_05", "bayer10", "case3375wp_nrjac", "memplus", "rajat19", "sherman5"]
SAMPLES = [("rlc:60x60", gs.splu), ("convdiff:16", gs.splu), ("elast:8x8x8", gs.cholesky)]
INDEFINITE = ["kkt:3000x1000x1", "kkt:3000x1000x6", "stokes:40x40", "stokes:9x9x9", "mixed:40x40", "helmholtz:80x80"]
LARGE_INDEFINITE = [
    *("kkt:100000x40000x6", "stokes:200x200", "stokes:16x16x16", "mixed:200x200", "helmholtz:300x300"),
    "helmholtz:22x22x22",
]
MAKERS = {
    "supernodal": lambda A: gs.splu(A, engine="supernodal"),
    "sflu": sflu,
    "crisscross": lambda A: crisscross(A, A.shape[0] - 100),
}
BY_NAME = {"ids": lambda value: getattr(value, "__name__", value)}


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("name", "factorize"), GALLERY, **BY_NAME)
def test_gallery(cupy, name, factorize, dtype):
    A = phased(gallery.named(name), dtype, hermitian=True)
    check_against_cpu(cupy, A, factorize, "supernodal", [(), (1,), (3,), (32,), (45,)])


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", ["circuit:20x20", "rlc:40x40", "power:40x40", "convdiff:20x20"])
def test_gallery_by_columns(cupy, name, dtype):
    check_against_cpu(cupy, phased(gallery.named(name), dtype, True), gs.splu, "sflu", [(), (1,), (3,), (45,)])


@pytest.mark.parametrize(("engine", "factorize", "name"), REAL, **BY_NAME)
def test_real_matrices(cupy, real_matrix, engine, factorize, name):
    check_against_cpu(cupy, real_matrix(name), factorize, engine, [(), (4,)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rlc:300x300", "poisson:400x400", "elast:20x20x20", "convdiff:30"])
def test_large_gallery(cupy, name):
    factorize = gs.cholesky if name.startswith(("poisson", "elast")) else gs.splu
    check_against_cpu(cupy, gallery.named(name), factorize, "supernodal", [()])


@pytest.mark.parametrize(("dtype", "hermitian"), indefinite.KINDS)
@pytest.mark.parametrize("name", INDEFINITE)
def test_indefinite_gallery(cupy, name, dtype, hermitian):
    def put(array):
        return cupy.asarray(np.asfortranarray(array))

    held = dtype in "dD" or not name.startswith("helmholtz")  # thousands of negative eigenvalues near zero
    indefinite.check_indefinite(gallery.named(name), dtype, hermitian, put, [(), (1,), (3,), (17,)], held)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE_INDEFINITE)
def test_large_indefinite_gallery(cupy, name):
    indefinite.check_indefinite(gallery.named(name), "d", True, cupy.asarray, [()])


@pytest.mark.parametrize(("name", "factorize"), [("elast:8x8x8", gs.cholesky), ("convdiff:16", gs.splu)])
def test_any_number_of_columns(cupy, name, factorize):
    """One factor uses the same buffers; columns do not depend on how many there are."""
    A = gallery.named(name)
    factor = factorize(A, engine="supernodal", refine="never")
    b = np.asfortranarray(rhs(A.shape[0], columns=(33,), seed=0))
    last = None
    for count in (2, 33, 5, 8, 9, 32, 3):
        for trans, op in (("N", A), ("T", A.T)):
            x = factor.solve(b[:, :count], trans)
            assert max(backward_error(op, x[:, k], b[:, k]) for k in range(count)) < 20 * np.finfo("d").eps
        assert last is None or np.array_equal(last, x[:, :2])
        last = x[:, :2].copy()


def test_sums_of_large_fronts(cupy):
    """The last front has 1950 columns; products subtracted from its entries one by one leave 4e-16."""
    A = gallery.named("elast:20x20x20")
    b = rhs(A.shape[0], seed=0)
    assert backward_error(A, gs.cholesky(A, engine="supernodal", refine="never").solve(b), b) < 2.2e-16


@pytest.mark.parametrize(("name", "factorize"), SAMPLES, **BY_NAME)
def test_values_that_the_callers_stream_is_still_writing(cupy, name, factorize):
    A = gallery.named(name)
    b = rhs(A.shape[0])
    factor, data, work = factorize(A, engine="supernodal"), cupy.asarray(A.data), cupy.ones((2000, 2000))
    with cupy.cuda.Stream(non_blocking=True) as stream:
        for _ in range(20):
            work = work @ work * 1e-4
        factor.refactor(data * (3 + 0 * work[0, 0]))
        doubled = 2 * factor.solve(cupy.asarray(b))
    stream.synchronize()
    assert backward_error(3 * A, doubled.get() / 2, b) < 1e-14


@pytest.mark.parametrize("engine", MAKERS)
def test_memory_does_not_grow(cupy, engine):
    """Neither CuPy's pool nor, unless other processes use the device, the memory of the device."""
    A = gallery.named("rlc:60x60")
    factor, values, b = MAKERS[engine](A), cupy.asarray(A.data), cupy.asarray(rhs(A.shape[0]))

    def after(steps):
        for _ in range(steps):
            factor.refactor(values)
            factor.solve(b)
        cupy.cuda.Device().synchronize()
        return cupy.get_default_memory_pool().used_bytes(), cupy.cuda.runtime.memGetInfo()[0]

    used, free = after(10)
    used_later, free_later = after(1000)
    assert used_later == used
    assert free_later >= free or "PYTEST_XDIST_WORKER" in os.environ


def test_half_the_memory_in_mixed_precision(cupy):
    A = gallery.named("poisson:40x40x40")
    used = {}
    for precision in ("double", "mixed"):
        factor = gs.cholesky(A, engine="supernodal", precision=precision)
        factor.solve(np.ones(A.shape[0]))
        used[precision] = factor.stats.bytes
    assert used["mixed"] < 0.6 * used["double"]


def test_no_garbage_collection_while_the_caller_captures(cupy):
    """The driver refuses to destroy a graph then."""
    device, stream = devices.open_device(), cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        try:
            with device.captured():
                enabled = gc.isenabled()
        finally:
            stream.end_capture()
    assert not enabled and gc.isenabled()


@pytest.mark.parametrize("dtype", "fdFD")
def test_values_of_a_widened_factor(cupy, dtype):
    C = np.zeros((400, 1), dtype)
    C[::90] = 1
    halves.check_widened(cupy, phased(gallery.named("poisson:20x20"), dtype, True), C)


@pytest.mark.parametrize("dtype", "dD")
def test_large_matrices_that_are_not_symmetric(cupy, dtype):
    """They have many blocks of the kernel that compares; the last pair differs."""
    A = phased(canonical(gallery.poisson(300, 300)), dtype, hermitian=True)
    factor, b = symmetric_values.supernodal("cholesky", A), symmetric_values.right_hand_side(A)
    for put in (np.asarray, cupy.asarray):
        last = A.data.copy()
        last[-2] *= 1.25
        for bad in (last, symmetric_values.spoilt(A, "below")):
            with pytest.raises(gs.NotHermitianError):
                factor.refactor_solve(put(bad), put(b))
        symmetric_values.check_holds(factor, A)


def pageable(self, nbytes):
    memory = np.empty(nbytes, np.uint8)
    return devices.Buffer(memory, memory.ctypes.data, nbytes)


@pytest.mark.parametrize("locked", [True, False], ids=["locked", "pageable"])
@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize(
    ("name", "factorize"),
    [("convdiff:20", gs.splu), ("elast:10x10x10", gs.cholesky), ("poisson:24x24x24", gs.cholesky)],
    **BY_NAME,
)
def test_streaming(cupy, monkeypatch, name, factorize, share, locked):
    """Factors larger than the device memory allowed have the same bits."""
    if not locked:
        monkeypatch.setattr(devices.Device, "host", pageable)
    A = gallery.named(name)
    whole = factorize(A, engine="supernodal")
    limit, pool = limit_between(whole.symbolic, share), cupy.get_default_memory_pool()
    before = pool.used_bytes()
    factor = factorize(A, engine="supernodal", device_memory=limit)
    assert factor.stats.n_windows > 1 and "streaming" in factor.explain()
    check_same_answers(whole, factor, A, (1.0, 3.0, 2.0), (9,), lambda b: cupy.asarray(np.asfortranarray(b)))
    del whole
    assert pool.used_bytes() - before < limit


# ---- glu


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("mode", [None, *MODES])
@pytest.mark.parametrize("name", ["circuit:30x30", "random"])
def test_modes_of_glu(cupy, mode, dtype, name):
    A = random_matrix(400, dtype) if name == "random" else canonical(gallery.named(name)).astype(dtype)
    check_mode(A, mode, 20, [(3,)])


@pytest.mark.parametrize("name", REAL_GLU)
def test_real_matrices_by_glu(cupy, real_matrix, name):
    A = canonical(real_matrix(name)).astype("d")
    factor = gs.splu(A, engine="glu")
    b = rhs(A.shape[0], "d")
    for trans, op in (("N", A), ("T", A.T)):
        assert backward_error(op, factor.solve(b, trans), b) < 100 * EPS["d"]
    A.data *= np.random.default_rng(0).uniform(0.9, 1.1, A.shape[0])[A.indices]  # the pivots stay good
    factor.refactor(A.data)
    assert backward_error(A, factor.solve(b), b) < 100 * EPS["d"]
    assert factor.stats.n_repivoted == 0
    assert on_device(factor)


@pytest.mark.parametrize("name", ["add20_seq", "mem_plus_seq", "voter_seq"])
def test_sequences_by_glu(cupy, real_sequence, name):
    """Newton steps of a circuit, whose pivots may have to change."""
    indptr, indices, shape, data = real_sequence(name)
    A = sp.csc_array((data[0].astype("d"), indices, indptr), shape=shape)
    factor, b = gs.splu(A, engine="glu"), rhs(shape[0], "d")
    for values in data[:: max(1, len(data) // 10)]:
        A.data = values.astype("d")
        factor.refactor(A.data)
        assert backward_error(A, factor.solve(b), b) < 1e-12
    assert on_device(factor)


# ---- sflu and crisscross


def test_schedules_of_sflu(cupy):
    A = gallery.named("rlc:60x60")
    check_tuned_alike(A, cupy.asarray(rhs(A.shape[0])), ({"by_levels": True}, {"by_levels": True, "grouped": False}))


@pytest.mark.parametrize("name", ["add20", "bayer10", "ibmpg1t_mna_tran", "memplus"])
def test_symbolic_phase(device, real_matrix, name):
    A = real_matrix(name)
    arrays = A.indptr.astype(np.int64), A.indices.astype(np.int32)
    for core in analyze_columns(*arrays, A.data):
        check_lu_pattern(device, *arrays, np.asarray(core.row_perm), np.asarray(core.col_perm))


@pytest.mark.parametrize("order", [0, 1, 30, 150, 400, 1600])
@pytest.mark.parametrize("dtype", "fdFD")
def test_trailing_blocks(cupy, order, dtype):
    check_trailing_block(cupy, phased(gallery.named("rlc:40x40"), dtype, True), order, [(), (3,), (45,)])
