"""Factors larger than the memory allowed, on an emulated device: same bits, within the limit, through one graph."""

import sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.cost.table import shipped
from gpusplu.cuda import devices
from gpusplu.engines.supernodal import memory as front_memory
from gpusplu.engines.supernodal.engine import predict
from support import fake_cupy
from support.emulated_device import EmulatedDevice, memory_at
from support.front_plans import limit_between
from support.small_matrices import EPS, phased, rhs
from support.solves import check_launches, check_same_answers
from support.symmetric_values import spoilt

ORDERS = ["last", *(pytest.param(order, marks=pytest.mark.thorough) for order in ("first", 1))]


@pytest.fixture
def plans(plan_with):
    """Plans of small fronts of which many count as large."""
    return plan_with(warp_rows=8, block_rows=16)


def matrix(dtype="d", n=(16, 4, 4)):
    return phased(gallery.poisson(*n), dtype, hermitian=True)


def limit_of(factor, plan, share):
    return limit_between(factor.symbolic, share, plan, warp_rows=8, block_rows=16)


@pytest.mark.parametrize(
    ("dtype", "order"),
    [
        pytest.param("d", "first", marks=pytest.mark.thorough),
        ("d", "last"),
        *(pytest.param(c, order, marks=pytest.mark.thorough) for c, order in zip("fFD", (1, 2, 3), strict=True)),
    ],
)
@pytest.mark.parametrize("make", [gs.splu, gs.cholesky])
def test_same_bits(device, plans, make, dtype, order):
    device.order = order
    check_same_bits(device, plans, make, matrix(dtype))


def test_ldlt_has_the_same_bits(device, plans):
    """And the CPU engine tells the inertia: the factor is not all there."""
    A = phased(gallery.helmholtz(16, 4, 4), "d")
    whole, factor = check_same_bits(device, plans, gs.ldlt, A)
    assert factor.inertia() == whole.inertia() is not None
    assert factor._core._cpu is not None and whole._core._cpu is None


def test_values_that_are_not_symmetric(device, plans, cupy):
    A, b = matrix(), rhs(256)
    whole = gs.cholesky(A, engine="supernodal", ordering="nd")
    factor = gs.cholesky(A, engine="supernodal", ordering="nd", device_memory=limit_of(whole, plans[-1], 0.05))
    assert factor.stats.n_windows > 0
    for put in (np.asarray, cupy.asarray):
        with pytest.raises(gs.NotHermitianError):
            factor.refactor_solve(put(spoilt(A, "below")), put(b))
        assert backward_error(A, factor.solve(b), b) < 1e-14


def check_same_bits(device, plans, make, A):
    """A factor and one that streams."""
    whole = make(A, engine="supernodal", ordering="nd")
    limit = limit_of(whole, plans[-1], 0.05)
    factor = make(A, engine="supernodal", ordering="nd", device_memory=limit)
    plan = plans[-1]
    assert plan.streamed > 2 and device.host_bytes == plan.host_size * A.dtype.itemsize
    check_same_answers(whole, factor, A, (1, 3), (6,))
    return whole, factor


def test_determinants_and_condition_numbers(device, plans):
    A = matrix()
    whole = gs.splu(A, engine="supernodal", ordering="nd")
    factor = gs.splu(A, engine="supernodal", ordering="nd", device_memory=limit_of(whole, plans[-1], 0.05))
    assert factor.stats.n_windows > 2
    assert factor.rcond() == whole.rcond()
    assert whole._core._cpu is None
    np.testing.assert_allclose(factor.slogdet().logabsdet, whole.slogdet().logabsdet, rtol=1e-13)
    assert whole._core._cpu is None


@pytest.mark.parametrize("make", [gs.splu, gs.cholesky])
def test_mixed_precision_instead(device, plans, make):
    A = matrix()
    limit = limit_of(make(A, engine="supernodal", ordering="nd"), plans[-1], 0.5)
    factor = make(A, engine="supernodal", ordering="nd", device_memory=limit, precision="auto")
    assert factor.stats.precision == "mixed"
    assert "device memory is insufficient" in factor.explain()
    assert factor.stats.n_windows < make(A, engine="supernodal", device_memory=limit, ordering="nd").stats.n_windows
    b = rhs(A.shape[0])
    assert backward_error(A, factor.solve(b), b) < 10 * EPS["d"]


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("order", ORDERS)
def test_in_a_graph_of_the_caller(device, plans, order):
    device.order = order
    A = matrix()
    whole = gs.splu(A, engine="supernodal", ordering="nd")
    factor = gs.splu(A, engine="supernodal", ordering="nd", device_memory=limit_of(whole, plans[-1], 0.05))
    assert factor.stats.n_windows > 2
    values, b = fake_cupy.asarray(A.data), fake_cupy.asarray(rhs(A.shape[0]))
    x = factor.refactor_solve(values, b, check="later")
    with device.capture() as graph:
        factor.refactor_solve(values, b, check="later", out=x)
    for scale in (2, 3):
        values[...] = scale * A.data
        graph.launch()
        np.testing.assert_array_equal(x, whole.refactor_solve(values, b))
    assert factor.check() < 100 * EPS["d"]


@pytest.mark.parametrize("share", [0, 0.9, pytest.param(0.2, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("make", [gs.splu, gs.cholesky])
def test_memory_stays_within_the_limit(monkeypatch, device, plans, make, share):
    A = matrix()
    limit = limit_of(make(A, engine="supernodal", ordering="nd"), plans[-1], share)
    limited = EmulatedDevice()
    monkeypatch.setattr(devices, "open_device", lambda which=None: limited)
    factor = make(A, engine="supernodal", ordering="nd", device_memory=limit)
    assert plans[-1].streamed > 0
    for columns in ((), (2,), (40,)):
        b = rhs(A.shape[0], columns=columns)
        assert backward_error(A, factor.solve(b), b) < 1e3 * EPS["d"]
    if make is gs.splu:
        factor.solve(b, "T")
    factor.refactor(A.data)
    assert 0.8 * limit < limited.most_used <= limit


def reversed_rows(A):
    """The same matrix with the entries of every column in descending order."""
    order = np.concatenate([np.arange(*A.indptr[k : k + 2])[::-1] for k in range(A.shape[1])])
    return sp.csc_array((A.data[order], A.indices[order], A.indptr), shape=A.shape)


@pytest.mark.parametrize("order", ORDERS)
def test_one_graph_does_both(monkeypatch, device, plans, order):
    """Values that are gathered first, refactored and solved with by one launch, on the device throughout."""
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    device.order = order
    A = reversed_rows(matrix())
    values, b = fake_cupy.asarray(3 * A.data), fake_cupy.asarray(rhs(A.shape[0]))
    whole = gs.splu(A, engine="supernodal", ordering="nd")
    factor = gs.splu(A, engine="supernodal", ordering="nd", device_memory=limit_of(whole, plans[-1], 0.1))
    assert plans[-1].streamed > 2
    for _ in range(2):
        x = factor.refactor_solve(values, b)
        np.testing.assert_array_equal(x, whole.refactor_solve(values, b))
    check_launches(device, factor, values, b)


def test_what_is_said_about_it(device, plans):
    A = matrix()
    whole = gs.splu(A, engine="supernodal", ordering="nd")
    assert whole.stats.n_windows == whole.stats.host_bytes == 0 and "streaming" not in whole.explain()
    factor = gs.splu(A, engine="supernodal", ordering="nd", device_memory=limit_of(whole, plans[-1], 0.1))
    plan = plans[-1]
    assert factor.stats.n_windows == plan.streamed and factor.stats.host_bytes == 8 * plan.host_size
    assert f"{plan.streamed} segments, {8 * plan.host_size:,} bytes" in factor.explain()
    assert factor.stats.bytes < whole.stats.bytes
    assert factor.stats.predicted_factor_seconds == plan.factor_seconds > whole.stats.predicted_factor_seconds
    assert factor.stats.predicted_solve_seconds == plan.solve_seconds > whole.stats.predicted_solve_seconds
    core = factor._symbolic.parts()[1].core
    choice = predict(core, 8, plan, shipped())  # what `auto` goes by
    assert choice.refactor >= plan.factor_seconds and choice.solve >= plan.solve_seconds


def test_free_memory_is_not_used_up(device, plans):
    """Without a limit, what is free is one; some of it is left to the caller."""
    A = matrix()
    whole = gs.splu(A, engine="supernodal", ordering="nd")
    b, limit, x = rhs(A.shape[0]), limit_of(whole, plans[-1], 0.5), whole.solve(rhs(A.shape[0]))
    del whole
    device.memory_bytes = device.used + limit
    factor = gs.splu(A, engine="supernodal", ordering="nd")
    assert plans[-1].streamed > 0
    np.testing.assert_array_equal(factor.solve(b), x)
    for trans in "NT":
        factor.solve(rhs(A.shape[0], columns=(2,)), trans)
    assert 0.1 * limit < device.free_bytes() < 0.15 * limit


def test_pageable_memory_where_none_can_be_locked():
    class OutOfMemory(Exception):
        pass

    def locked(nbytes):
        raise OutOfMemory

    device = object.__new__(devices.Device)
    device._device = nullcontext()
    device._cuda = SimpleNamespace(PinnedMemory=locked, runtime=SimpleNamespace(CUDARuntimeError=OutOfMemory))
    buffer = device.host(1000)
    memory_at(buffer.pointer, 1000)[:] = 7
    assert buffer.nbytes == 1000 and (buffer._memory == 7).all()


def test_not_even_one_segment(device, plans):
    A = matrix()
    whole = gs.splu(A, engine="supernodal", ordering="nd")
    limit = limit_of(whole, plans[-1], 0) // 2
    used = device.used
    with pytest.raises(gs.DeviceMemoryError) as caught:
        gs.splu(A, engine="supernodal", ordering="nd", device_memory=limit)
    assert caught.value.free == limit
    least = front_memory.needed_bytes(plans[-1], whole._symbolic.parts()[0].pattern)
    assert caught.value.needed == least and plans[-1].factor_size == plans[-1].segment_size.max()
    assert device.used == used


def test_another_dtype_of_the_same_symbolic(device, plans):
    """The plan is made anew, within the same limit."""
    A = matrix()
    limit = limit_of(gs.splu(A.astype("D"), engine="supernodal", ordering="nd"), plans[-1], 0.1)
    symbolic = gs.analyze(A, engine="supernodal", ordering="nd", device_memory=limit)
    b = rhs(A.shape[0], "F")
    factor = symbolic.factor(A.astype("D"))
    assert plans[-1].scalar == "D" and plans[-1].streamed > 2
    assert backward_error(A, factor.solve(b.astype("D")), b) < 1e3 * EPS["D"]
