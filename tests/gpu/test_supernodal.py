"""The supernodal engine on a device solves what the CPU engine solves, as accurately."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from support.small_matrices import phased, rhs
from support.solves import check_against_cpu

pytestmark = pytest.mark.gpu

GALLERY = [
    ("circuit:20x20", gs.splu),
    ("rlc:60x60", gs.splu),
    ("power:40x40", gs.splu),
    ("convdiff:40x40", gs.splu),
    ("convdiff:16", gs.splu),
    ("poisson:60x60", gs.cholesky),
    ("poisson:16x16x16", gs.cholesky),
    ("elast:8x8x8", gs.cholesky),
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


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("name", "factorize"), GALLERY, ids=lambda value: getattr(value, "__name__", value))
def test_gallery(cupy, name, factorize, dtype):
    A = phased(gallery.named(name), dtype, hermitian=True)
    check_against_cpu(cupy, A, factorize, "supernodal", [(), (1,), (3,), (32,), (45,)])


@pytest.mark.parametrize("name", REAL_LU)
def test_real_lu(cupy, real_matrix, name):
    check_against_cpu(cupy, real_matrix(name), gs.splu, "supernodal", [(), (4,)])


@pytest.mark.parametrize("name", REAL_CHOLESKY)
def test_real_cholesky(cupy, real_matrix, name):
    check_against_cpu(cupy, real_matrix(name), gs.cholesky, "supernodal", [(), (4,)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rlc:300x300", "poisson:400x400", "elast:20x20x20", "convdiff:30"])
def test_large_gallery(cupy, name):
    A = gallery.named(name)
    factorize = gs.cholesky if name.startswith(("poisson", "elast")) else gs.splu
    check_against_cpu(cupy, A, factorize, "supernodal", [()])


@pytest.mark.parametrize(("name", "factorize"), [("elast:8x8x8", gs.cholesky), ("convdiff:16", gs.splu)])
def test_any_number_of_columns(cupy, name, factorize):
    """One factor, the same buffers; columns do not depend on how many there are."""
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
    """The last front has 1950 columns; products that are taken from its entries one by one leave 4e-16."""
    A = gallery.named("elast:20x20x20")
    b = rhs(A.shape[0], seed=0)
    assert backward_error(A, gs.cholesky(A, engine="supernodal", refine="never").solve(b), b) < 2.2e-16
