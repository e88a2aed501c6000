"""Large arrays of the host in pieces of page-locked memory, and what a device that is full says."""

from contextlib import nullcontext
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.cuda import chunked_copies, devices
from support.emulated_device import EmulatedDevice, memory_at

CHUNK, LEAST = 64, 100


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(chunked_copies, "CHUNK", CHUNK)
    monkeypatch.setattr(chunked_copies, "LEAST", LEAST)


@pytest.mark.parametrize("size", [0, 1, LEAST - 1, LEAST, 2 * CHUNK, 2 * CHUNK + 1, 1000])
def test_every_byte_arrives(small_pieces, size):
    device, array = EmulatedDevice(), np.random.default_rng(size).integers(0, 256, size, np.uint8)
    buffer, found = device.empty(size), np.zeros(size, np.uint8)
    with device:
        stream = device.new_stream()
        device.send(stream, buffer.pointer, array)
        sent = array.copy()
        array[...] = 0  # it has been read
        device.fetch(stream, found, buffer.pointer)
    np.testing.assert_array_equal(found, sent)
    assert device.counts["copy"] == 2 * (1 if size < LEAST else -(-size // CHUNK))


def test_what_is_on_its_way_is_waited_for(small_pieces, monkeypatch):
    """Where a signal ends the copies, before anybody else gets the memory."""
    device = EmulatedDevice()
    buffer, calls = device.empty(1000), []

    def copy(to, source):
        calls.append(source.size)
        if len(calls) == 3:
            device.counts["synchronize"] = 0
            raise KeyboardInterrupt

    monkeypatch.setattr(chunked_copies._core, "copy", copy)
    with device, pytest.raises(KeyboardInterrupt):
        device.send(device.new_stream(), buffer.pointer, np.zeros(1000, np.uint8))
    assert device.counts["synchronize"] == 2


@pytest.mark.parametrize("way", ["send", "fetch"])
def test_a_signal_handler_copies_while_its_thread_does(small_pieces, monkeypatch, way):
    """Large arrays, for which the pieces are taken: nothing waits for ever, and both arrive."""
    device, outer, inner = EmulatedDevice(), np.arange(250, dtype=np.uint8), np.arange(200, dtype=np.uint8)[::-1].copy()
    buffers, found, calls = (device.empty(250), device.empty(200)), (np.zeros_like(outer), np.zeros_like(inner)), []

    def handle_between_pieces(to, source, copy=chunked_copies._core.copy):
        calls.append(source.size)
        if len(calls) == 2:
            copies(inner, 1)
        copy(to, source)

    def copies(array, which):
        buffer, stream = buffers[which], device.new_stream()
        if way == "send":
            device.send(stream, buffer.pointer, array)
            stream.synchronize()
            found[which][...] = memory_at(buffer.pointer, array.size)
        else:
            memory_at(buffer.pointer, array.size)[...] = array
            device.fetch(stream, found[which], buffer.pointer)

    monkeypatch.setattr(chunked_copies._core, "copy", handle_between_pieces)
    thread = Thread(target=lambda: (device.__enter__(), copies(outer, 0)), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    for array, arrived in zip((outer, inner), found, strict=True):
        np.testing.assert_array_equal(arrived, array)
    calls.clear()
    with device:
        copies(outer, 0)
    assert calls == [CHUNK, CHUNK, CHUNK, 58]  # the pieces are free again


def test_batches_of_the_host(small_pieces, device):
    A = gallery.poisson(6, 5)
    rng = np.random.default_rng(0)
    values, b = A.data * rng.uniform(1, 2, (40, 1)), rng.standard_normal((40, 30))
    batch = gs.cholesky_batch(A, values, engine="supernodal")
    x = batch.refactor_solve(2 * values, b)
    for k in range(40):
        np.testing.assert_allclose(2 * (A @ x[k]) * (values[k, 0] / A.data[0]), b[k], atol=1e-12)


class DriverError(RuntimeError):
    def __init__(self, status):
        self.status = status


@pytest.mark.parametrize(("status", "error"), [(devices.OUT_OF_MEMORY, gs.DeviceMemoryError), (999, DriverError)])
def test_kernels_that_cannot_be_loaded(monkeypatch, status, error):
    """Only what a file does not have is left out."""

    class Module:
        def load(self, code):
            pass

        def get_function(self, name):
            raise DriverError(devices.NOT_FOUND if name == "none" else status)

    monkeypatch.setattr(devices.compiled, "kernels", lambda *key: b"code")
    monkeypatch.setattr(devices, "arguments", lambda file: {"none": None, "some": None})
    device = object.__new__(devices.Device)
    device._cuda = SimpleNamespace(driver=SimpleNamespace(CUDADriverError=DriverError))
    device._cuda.function = SimpleNamespace(Module=Module)
    device._device, device._lock, device._modules, device.arch = nullcontext(), nullcontext(), {}, 90
    monkeypatch.setattr(devices.Device, "free_bytes", lambda self: 7)
    with pytest.raises(error):
        device.load("common/residual.cu", "d", 0)
    assert not device._modules
