"""precision="mixed" on a device."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from support.mixed import check_mixed, check_parts_are_double, check_values_on_device
from support.small_matrices import phased

pytestmark = pytest.mark.gpu

CASES = [("poisson:20x20x20", gs.cholesky), ("elast:8x8x8", gs.cholesky), ("convdiff:16", gs.splu)]


@pytest.mark.parametrize("dtype", "dD")
@pytest.mark.parametrize(("name", "make"), CASES, ids=[name for name, _ in CASES])
def test_mixed(cupy, name, make, dtype):
    A = phased(gallery.named(name), dtype, make is gs.cholesky)
    for put in (np.asarray, cupy.asarray):
        check_mixed(A, make, ((), (3,), (20,)), put, engine="supernodal")


def test_parts(cupy):
    A = gallery.named("convdiff:10")
    mixed, double = (gs.splu(A, engine="supernodal", precision=precision) for precision in ("mixed", "double"))
    check_parts_are_double(A, mixed, double)


@pytest.mark.parametrize("engine", ["sflu", "glu"])
def test_columns(cupy, engine):
    check_mixed(gallery.named("rlc:20x20"), gs.splu, ((), (3,)), cupy.asarray, engine=engine)


def test_values_on_the_device(cupy):
    check_values_on_device(cupy, "supernodal")


def test_half_the_memory(cupy):
    A = gallery.named("poisson:40x40x40")
    used = {}
    for precision in ("double", "mixed"):
        factor = gs.cholesky(A, engine="supernodal", precision=precision)
        factor.solve(np.ones(A.shape[0]))
        used[precision] = factor.stats.bytes
    assert used["mixed"] < 0.6 * used["double"]
