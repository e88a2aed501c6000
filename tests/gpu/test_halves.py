"""Schur complements and changes of low rank of factors on a CUDA device."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from support.halves import KINDS, check_changes, check_schur, check_updated, check_widened, two_grids
from support.small_matrices import phased, random_matrix, rhs, spd_matrix

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("cupy")]


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("kind", KINDS)
def test_schur_complements(cupy, kind, dtype):
    check_schur(cupy, KINDS[kind](400, dtype), np.arange(100, 140), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_large_fronts_and_several_roots(cupy, kind):
    A, indices = two_grids(kind)
    check_schur(cupy, A, indices, kind)


@pytest.mark.parametrize("engine", ["supernodal", "glu", "sflu", "crisscross"])
@pytest.mark.parametrize("dtype", "fdFD")
def test_updated(engine, dtype):
    check_updated(random_matrix(400, dtype), gs.splu, engine)


@pytest.mark.parametrize("dtype", "fdFD")
def test_changes(dtype):
    C = np.zeros((400, 2), dtype)
    C[::90] = rhs(5, dtype, (2,))
    check_changes(spd_matrix(400, dtype), C)


@pytest.mark.parametrize("dtype", "fdFD")
def test_values_of_a_widened_factor(cupy, dtype):
    C = np.zeros((400, 1), dtype)
    C[::90] = 1
    check_widened(cupy, phased(gallery.named("poisson:20x20"), dtype, True), C)
