"""A batch dealt over several emulated devices: the bits that one device has."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.dispatch.patterns import STORE
from gpusplu.engines.supernodal.batch import shares
from support.emulated_device import EmulatedHost

A = gallery.poisson(5, 4)
COUNT = 7


@pytest.fixture
def hosts(monkeypatch):
    def host(count, **options):
        STORE.clear()  # what was analysed for other devices
        return EmulatedHost([4] * count, **options).install(monkeypatch)

    return host


def systems():
    rng = np.random.default_rng(2)
    return A.data * rng.uniform(1, 2, (COUNT, 1)), rng.standard_normal((COUNT, A.shape[0], 2))


def made(device):
    return gs.cholesky_batch(A, systems()[0], engine="supernodal", device=device)


@pytest.mark.parametrize("peers", [True, False])
def test_same_bits(hosts, cupy, peers):
    values, b = systems()
    hosts(1)
    alone = made(0)
    x, logs = alone.solve(b), alone.slogdet()[1]
    hosts(3, peers=peers)
    batch = made([0, 1, 2])
    np.testing.assert_array_equal(batch.solve(b), x)
    np.testing.assert_array_equal(batch.slogdet()[1], logs)
    np.testing.assert_array_equal(batch.status, alone.status)
    batch.refactor(cupy.asarray(values * 4))
    np.testing.assert_array_equal(batch.solve(cupy.asarray(b)).get() * 4, x)
    np.testing.assert_array_equal(batch.refactor_solve(values, b), x)


@pytest.mark.parametrize(
    ("count", "speeds", "expected"),
    [(7, [1, 1, 1], [3, 2, 2]), (1, [1, 1], [1, 0]), (640, [1, 1], [320, 320]), (640, [3, 1], [480, 160])],
)
def test_shares(count, speeds, expected):
    found = shares(count, speeds)
    assert found == expected
    assert count < 640 or all(share % 32 == 0 for share in found)


def test_a_device_that_fails(hosts):
    host = hosts(2)
    batch = made([0, 1])
    host.gone.add(1)
    with pytest.raises(gs.DeviceFailedError, match="devices 0, 1 failed"):
        batch.solve(systems()[1])
