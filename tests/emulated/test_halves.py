"""Schur complements and changes of low rank of factors on an emulated device."""

import numpy as np
import pytest

import gpusplu as gs
from support.halves import check_changes, check_schur, check_updated, check_widened
from support.small_matrices import random_matrix, rhs, spd_matrix


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("dtype", "dF")
@pytest.mark.parametrize("definite", [False, True])
def test_schur_complements(cupy, definite, dtype):
    A = spd_matrix(40, dtype)
    check_schur(cupy, A, np.array([30, 3, 17]), cholesky=definite)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("engine", ["supernodal", "glu", "sflu", "crisscross"])
@pytest.mark.parametrize("dtype", "dD")
def test_updated(engine, dtype):
    check_updated(random_matrix(40, dtype), gs.splu, engine)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("rows", [slice(None, None, 9), slice(3, 4)])
@pytest.mark.parametrize("dtype", "fD")
def test_changes(dtype, rows):
    C = np.zeros((40, 2), dtype)
    C[rows] = rhs(len(C[rows]), dtype, (2,))
    check_changes(spd_matrix(40, dtype), C)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("dtype", "fD")
def test_values_of_a_widened_factor(cupy, dtype):
    C = np.zeros((40, 1), dtype)
    C[::9] = 1
    check_widened(cupy, spd_matrix(40, dtype), C)
