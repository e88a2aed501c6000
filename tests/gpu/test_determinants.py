"""Determinants and condition numbers from factors on a device, without the CPU engine's factor."""

import pytest

import gpusplu as gs
from gpusplu import gallery
from support.determinants import check_determinant_and_condition
from support.small_matrices import phased

pytestmark = pytest.mark.gpu

CASES = [("poisson:20x20x20", gs.cholesky), ("elast:8x8x8", gs.cholesky), ("convdiff:16", gs.splu)]


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("name", "make"), CASES, ids=[name for name, _ in CASES])
def test_fronts(cupy, name, make, dtype):
    A = phased(gallery.named(name), dtype, make is gs.cholesky)
    check_determinant_and_condition(A, make, "supernodal")


@pytest.mark.parametrize("engine", ["glu", "sflu"])
def test_columns(cupy, engine):
    check_determinant_and_condition(gallery.named("rlc:30x30"), gs.splu, engine)
