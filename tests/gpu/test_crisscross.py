"""The crisscross engine on a device: as accurate as the CPU engine wherever the columns are divided, and repeatable."""

import pytest
from column_engines import CIRCUITS, check
from test_answers import rhs, turned

import gpusplu as gs
from gpusplu import gallery
from gpusplu.engines.crisscross.engine import CrisscrossEngine
from gpusplu.engines.registry import registered

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", CIRCUITS)
def test_circuits(cupy, real_matrix, name):
    check(cupy, "crisscross", real_matrix(name), [(), (4,)])


@pytest.mark.parametrize("order", [0, 1, 30, 150, 400, 1600])
@pytest.mark.parametrize("dtype", "fdFD")
def test_trailing_blocks(cupy, order, dtype):
    A = turned(gallery.named("rlc:40x40"), dtype)
    with registered(CrisscrossEngine(division=A.shape[0] - order)):
        factor = check(cupy, "crisscross", A, [(), (3,), (45,)])
    assert factor.stats.division == A.shape[0] - order
    assert factor.stats.n_repivoted == 0


def test_bits_repeat(cupy):
    A = gallery.named("rlc:60x60")
    b = cupy.asarray(rhs(A, ()))
    with registered(CrisscrossEngine(division=A.shape[0] - 300)):
        factor = gs.splu(A, engine="crisscross")
    x = factor.solve(b).get()
    for _ in range(20):
        factor.refactor(cupy.asarray(A.data))
        assert factor.solve(b).get().tobytes() == x.tobytes()


def test_memory_does_not_grow(cupy):
    A = gallery.named("circuit:30x30")
    with registered(CrisscrossEngine(division=A.shape[0] - 100)):
        factor = gs.splu(A, engine="crisscross")
    values, b = cupy.asarray(A.data), cupy.asarray(rhs(A, ()))
    factor.refactor_solve(values, b)
    before = cupy.get_default_memory_pool().used_bytes()
    for _ in range(100):
        factor.refactor_solve(values, b)
    assert cupy.get_default_memory_pool().used_bytes() <= before
