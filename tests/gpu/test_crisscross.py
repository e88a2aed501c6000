"""The crisscross engine on a device: as accurate as the CPU engine wherever the columns are divided, and repeatable."""

import pytest

import gpusplu as gs
from gpusplu import gallery
from support.column_engines import CIRCUITS, check_trailing_block, crisscross
from support.small_matrices import phased
from support.solves import check_against_cpu, check_bits_repeat, check_memory_does_not_grow

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", CIRCUITS)
def test_circuits(cupy, real_matrix, name):
    check_against_cpu(cupy, real_matrix(name), gs.splu, "crisscross", [(), (4,)])


@pytest.mark.parametrize("order", [0, 1, 30, 150, 400, 1600])
@pytest.mark.parametrize("dtype", "fdFD")
def test_trailing_blocks(cupy, order, dtype):
    check_trailing_block(cupy, phased(gallery.named("rlc:40x40"), dtype, True), order, [(), (3,), (45,)])


def test_bits_repeat(cupy):
    check_bits_repeat(cupy, lambda A: crisscross(A, A.shape[0] - 300), gallery.named("rlc:60x60"), 20)


def test_memory_does_not_grow(cupy):
    A = gallery.named("circuit:30x30")
    check_memory_does_not_grow(cupy, crisscross(A, A.shape[0] - 100), A)
