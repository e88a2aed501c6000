"""Several devices: those of the machine, and one that stands for each, with streams, memory and fronts of its own.

The second is for machines of one, and cannot show that memory of another device is meant.
"""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.cuda import devices, several
from gpusplu.dispatch.patterns import STORE
from gpusplu.engines.supernodal import shared_plan
from support.front_plans import random_deal
from support.small_matrices import phased

pytestmark = pytest.mark.gpu


class Stand(devices.Device):
    """One of several that the device stands for."""

    def reaches(self, other):
        return True


@pytest.fixture
def count(cupy):
    """How many devices the machine has, or a skip."""
    found = devices.count_devices()
    if found < 2:
        pytest.skip("a machine of one device")
    return found


@pytest.fixture(params=["all", "stands", "through the host"])
def which(request, cupy, monkeypatch):
    """What to pass as `device=`: all that there are, by peer access or without, or three that one stands for."""
    if request.param == "stands":
        opened = tuple(Stand(0) for _ in range(3))
        monkeypatch.setattr(several, "open_devices", lambda which: opened)
        return [0, 1, 2]
    if request.param == "through the host":
        monkeypatch.setattr(devices.Device, "reaches", lambda self, other: self is other)
    return list(range(request.getfixturevalue("count")))


@pytest.fixture
def plans(monkeypatch):
    """Pieces go to random devices, and large fronts that are pieces are shared. The plans that are made."""
    plans, share_plan = [], shared_plan.share_plan

    def dealt(plan, speeds, memory, link, **options):
        return random_deal(plan, len(speeds), 40, 1, shared=1.0)

    def kept_plan(*arguments):
        plans.append(share_plan(*arguments))
        return plans[-1]

    monkeypatch.setattr(shared_plan, "map_fronts", dealt)
    monkeypatch.setattr(shared_plan, "share_plan", kept_plan)
    STORE.clear()
    yield plans
    STORE.clear()


def answers(make, A, device):
    """Solutions before and after refactorizations, which are recorded once and replayed later."""
    B = np.random.default_rng(0).standard_normal((A.shape[0], 3)).astype(A.dtype)
    factor = make(A, engine="supernodal", device=device)
    found = [factor.solve(B[:, 0]), factor.solve(B[:, 1], "T"), factor.solve(B)]
    for scale in (2, 3, 5):
        factor.refactor(A.data * scale)
        found.append(factor.solve(B[:, 0]))
    return [*found, factor.refactor_solve(A.data * 7, B[:, 2])]


CASES = [(gs.cholesky, "d"), (gs.cholesky, "F"), (gs.splu, "d"), (gs.splu, "D"), (gs.ldlt, "d"), (gs.ldlt, "f")]


@pytest.mark.parametrize(("make", "dtype"), CASES)
def test_same_bits_as_alone(which, plans, make, dtype):
    A = phased(gallery.named("elast:16x16x16"), dtype, hermitian=True)
    alone = answers(make, A, 0)
    STORE.clear()
    together = answers(make, A, which)
    assert plans[-1].tiles, "no front is shared"
    for found, wanted in zip(together, alone, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["poisson:40x40x40", "rlc:150x150"])
def test_same_bits_as_planned(count, name):
    A = gallery.named(name)
    make = gs.cholesky if name.startswith("poisson") else gs.splu
    alone, together = (answers(make, A, device) for device in (0, "all"))
    for found, wanted in zip(together, alone, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_first_device_is_the_callers(count, cupy):
    """Arrays of the first of the list, whatever device it is, and on a stream of the caller's."""
    A = gallery.named("elast:12x12x12")
    factor = gs.cholesky(A, engine="supernodal", device=[1, 0])
    with cupy.cuda.Device(1), cupy.cuda.Stream(non_blocking=True):
        values, b = cupy.asarray(A.data) * 2, cupy.ones(A.shape[0])
        factor.refactor(values)
        x = factor.solve(b)
        assert x.device.id == 1
        x = x.get()
    np.testing.assert_array_equal(x, gs.cholesky(A * 2, engine="supernodal", device=0).solve(np.ones(A.shape[0])))


@pytest.mark.parametrize("name", ["rlc:20x20", "elast:6x6x6"])
def test_batches(count, name):
    """Systems are dealt: those of one device, bit for bit, with values on the host and on the first one."""
    A = gallery.named(name)
    rng = np.random.default_rng(1)
    values = A.data * (1 + 0.01 * rng.random((200, 1)))
    b = rng.standard_normal((200, A.shape[0]))
    make = gs.cholesky_batch if name.startswith("elast") else gs.splu_batch
    alone, together = (make(A, values, engine="supernodal", device=device) for device in (0, "all"))
    np.testing.assert_array_equal(together.solve(b), alone.solve(b))
    np.testing.assert_array_equal(together.refactor_solve(values * 2, b), alone.refactor_solve(values * 2, b))
