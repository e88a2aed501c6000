"""The supernodal engine on a device: repeatable, no growth of memory, the caller's stream, errors that come later."""

import gc
import os

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.cuda import devices
from support.solves import check_bits_repeat, check_error_comes_later, check_pickle

pytestmark = pytest.mark.gpu

CASES = [("rlc:60x60", gs.splu), ("convdiff:16", gs.splu), ("elast:8x8x8", gs.cholesky)]


@pytest.fixture(params=CASES, ids=[f"{name}-{factorize.__name__}" for name, factorize in CASES])
def problem(request):
    """Matrix, the function that factors it, right-hand side."""
    name, factorize = request.param
    A = gallery.named(name)
    return A, factorize, np.random.default_rng(0).normal(size=A.shape[0])


def test_bits_repeat(cupy, problem):
    A, factorize, _ = problem
    check_bits_repeat(cupy, lambda A: factorize(A, engine="supernodal"), A, 1)


def test_memory_does_not_grow(cupy, problem):
    """Neither what CuPy's pool holds nor, unless other processes test beside this one, what the device has left."""
    A, factorize, b = problem
    factor, values, b = factorize(A, engine="supernodal"), cupy.asarray(A.data), cupy.asarray(b)

    def after(steps):
        for _ in range(steps):
            factor.refactor(values)
            factor.solve(b)
        cupy.cuda.Device().synchronize()
        return cupy.get_default_memory_pool().used_bytes(), cupy.cuda.runtime.memGetInfo()[0]

    used, free = after(10)
    used_later, free_later = after(1000)
    assert used_later == used
    assert free_later >= free or "PYTEST_XDIST_WORKER" in os.environ


def test_host_in_host_out(cupy, problem):
    A, factorize, b = problem
    factor = factorize(A, engine="supernodal")
    factor.refactor(2 * A.data)
    x = factor.solve(b)
    assert type(x) is np.ndarray
    assert backward_error(2 * A, x, b) < 1e-14
    assert factor.engine == "supernodal"


def test_callers_stream(cupy, problem):
    """Values are still being made on the caller's stream when refactor is called."""
    A, factorize, b = problem
    factor, data = factorize(A, engine="supernodal"), cupy.asarray(A.data)
    work = cupy.ones((2000, 2000))
    with cupy.cuda.Stream(non_blocking=True) as stream:
        for _ in range(20):
            work = work @ work * 1e-4
        factor.refactor(data * (3 + 0 * work[0, 0]))
        x = factor.solve(cupy.asarray(b))
        doubled = 2 * x
    stream.synchronize()
    assert backward_error(3 * A, doubled.get() / 2, b) < 1e-14


def test_what_is_wrong_shows_later(cupy):
    A = gallery.named("rlc:60x60")
    spoilt = A.data.copy()
    spoilt[7] = np.nan
    error = pytest.raises(gs.NonFiniteError)
    check_error_comes_later(cupy, gs.splu(A, engine="supernodal"), A, spoilt, error, cupy.asarray)


def test_not_positive_definite(cupy):
    A = gallery.named("elast:8x8x8")
    error = pytest.raises(gs.NotPositiveDefiniteError)
    check_error_comes_later(cupy, gs.cholesky(A, engine="supernodal"), A, -A.data, error, cupy.asarray)


def test_pickle(cupy, problem):
    A, factorize, _ = problem
    factor = factorize(A, engine="supernodal")
    assert factor.engine == "supernodal"
    check_pickle(factor, A, cupy.asarray)


def test_nothing_is_collected_while_the_caller_captures(cupy):
    """The driver refuses to destroy a graph meanwhile."""
    device, stream = devices.open_device(), cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        try:
            with device.captured():
                enabled = gc.isenabled()
        finally:
            stream.end_capture()
    assert not enabled and gc.isenabled()
