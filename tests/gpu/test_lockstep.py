"""Batches in lockstep on a device: what the emulator's tests hold, and real matrices."""

import numpy as np
import pytest

from gpusplu import gallery
from support import lockstep as checks
from support import suspects
from support.lockstep import EVERY
from support.small_matrices import canonical

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", "fdFD")
@EVERY
def test_solutions(cupy, definite, name, matrix, dtype):
    checks.check_solutions(matrix(dtype), definite, cupy.asarray)


@pytest.mark.parametrize("name", ["add20", "memplus", "case3375wp_nrjac", "ibmpg1t_mna_tran"])
def test_circuits(cupy, real_matrix, name):
    checks.check_solutions(canonical(real_matrix(name)), False, cupy.asarray, 40, sound=False)


@pytest.mark.parametrize("definite", [False, True])
@pytest.mark.parametrize("name", ["elast:5x5x5", "poisson:12x12x12"])
def test_large_fronts(cupy, name, definite):
    checks.check_solutions(canonical(gallery.named(name)), definite, cupy.asarray, 33)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", ["poisson:40x40", "elast:4x4x4"])
@pytest.mark.parametrize("definite", [False, True])
def test_bits(cupy, definite, name, dtype):
    checks.check_bits(canonical(gallery.named(name)).astype(dtype), definite, cupy.asarray, (1, 33, 500), 1000)


@pytest.mark.parametrize("dtype", "fdFD")
def test_refinement(cupy, dtype):
    checks.check_refinement(cupy.asarray, dtype)


@pytest.mark.parametrize("where", ["device", "host"])
@pytest.mark.parametrize("dtype", "fdFD")
def test_suspect_systems(cupy, where, dtype):
    """The host works on them while the device works on all."""
    suspects.check_calls(cupy.asarray if where == "device" else np.asarray, dtype)


@pytest.mark.parametrize(
    "check",
    [suspects.check_changes, suspects.check_other_results, suspects.check_failures],
    ids=lambda check: check.__name__,
)
def test_suspect_systems_that_change(cupy, check):
    check(cupy.asarray)
