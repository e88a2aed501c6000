"""Factors that begin on the processor and go over to a real device, while their caller goes on."""

import time

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error

pytestmark = pytest.mark.gpu
SECONDS = 20.0


@pytest.fixture
def A(cupy):
    gs.cache_clear()
    return gallery.named("rlc:100x100")


def until_it_moves(step):
    """Steps, and their engines, until one is not the processor's."""
    end, engines = time.perf_counter() + SECONDS, []
    while time.perf_counter() < end and (not engines or engines[-1] == "cpu"):
        engines.append(step(1 + len(engines) % 7))
    engines += [step(scale) for scale in (1, 2, 3)]
    return engines


@pytest.mark.parametrize("on_device", [False, True], ids=["host", "device"])
def test_a_factor_moves(cupy, A, on_device):
    put = cupy.asarray if on_device else np.asarray
    values, b = put(A.data), np.random.default_rng(0).normal(size=A.shape[0])
    lu, there = gs.splu(A), put(b)
    assert lu.engine == "cpu"

    def step(scale):
        lu.refactor(scale * values)
        x = lu.solve(there)
        assert backward_error(scale * A, x if not on_device else x.get(), b) < 1e-14
        return lu.engine

    engines = until_it_moves(step)
    assert engines[-1] != "cpu" and len(set(engines) - {"cpu"}) == 1
    assert engines == sorted(engines)  # once, and never back
    assert "began with 'cpu'" in lu.explain()


def test_solves_of_a_program_move(cupy, A):
    b = np.random.default_rng(0).normal(size=A.shape[0])

    def step(scale):
        assert backward_error(scale * A, gs.spsolve(scale * A, b), b) < 1e-14
        return gs.splu(scale * A).engine

    engines = until_it_moves(step)
    assert engines[0] == "cpu" and len(set(engines)) == 2
