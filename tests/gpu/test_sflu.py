"""The SFLU engine on a device: as accurate as the CPU engine, repeatable, no growth of memory."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from support.analyses import analyze_columns
from support.column_engines import CIRCUITS, check_lu_pattern, check_tuned_alike, sflu
from support.small_matrices import phased, rhs
from support.solves import check_against_cpu, check_bits_repeat, check_memory_does_not_grow

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", ["circuit:20x20", "rlc:40x40", "power:40x40", "convdiff:20x20"])
def test_gallery(cupy, name, dtype):
    check_against_cpu(cupy, phased(gallery.named(name), dtype, True), gs.splu, "sflu", [(), (1,), (3,), (45,)])


@pytest.mark.parametrize("name", CIRCUITS)
def test_circuits(cupy, real_matrix, name):
    check_against_cpu(cupy, real_matrix(name), gs.splu, "sflu", [(), (4,)])


def test_bits_repeat_whatever_waits_for_what(cupy):
    A = gallery.named("rlc:60x60")
    check_bits_repeat(cupy, sflu, A, 20)
    b = cupy.asarray(rhs(A.shape[0]))
    check_tuned_alike(A, b, ({"by_levels": True}, {"by_levels": True, "grouped": False}))


@pytest.mark.parametrize("name", ["add20", "bayer10", "ibmpg1t_mna_tran", "memplus"])
def test_symbolic_phase(device, real_matrix, name):
    A = real_matrix(name)
    arrays = A.indptr.astype(np.int64), A.indices.astype(np.int32)
    for core in analyze_columns(*arrays, A.data):
        check_lu_pattern(device, *arrays, np.asarray(core.row_perm), np.asarray(core.col_perm))


def test_symbolic_phase_of_an_engine(device):
    A = gallery.named("rlc:60x60")
    b = rhs(A.shape[0])
    factor = gs.splu(A, engine="sflu", options={"symbolic": "device"})
    assert factor.stats.symbolic == "device"
    assert factor.solve(b).tobytes() == gs.splu(A, engine="sflu").solve(b).tobytes()


def test_memory_does_not_grow(cupy):
    A = gallery.named("circuit:30x30")
    check_memory_does_not_grow(cupy, sflu(A), A)
