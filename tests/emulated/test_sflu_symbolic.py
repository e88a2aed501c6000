"""The pattern of L + U from the kernel, on an emulated device, against the CPU's."""

import numpy as np
import pytest

from gpusplu.engines.sflu import symbolic as sflu_symbolic
from gpusplu.errors import EngineUnavailableError
from support.column_engines import check_lu_pattern
from support.emulated_device import EmulatedDevice
from support.symbolic_reference import random_pattern


def check(device, n, density, seed):
    _, *arrays = random_pattern(n, density, seed)
    rng = np.random.default_rng(seed + 1)
    perms = [rng.permutation(n).astype(np.int32) for _ in range(2)]
    check_lu_pattern(device, *arrays, *perms)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "density"), [(0, 0), (1, 0), (40, 0.05), (70, 0.3), (1500, 0.0008), (3000, 0.0004)])
def test_pattern(n, density, seed):
    check(EmulatedDevice(seed=seed), n, density, seed)


def test_more_fill_than_there_was_room_for(monkeypatch):
    monkeypatch.setattr(sflu_symbolic, "GUESS", 1)
    device = EmulatedDevice()
    check(device, 60, 0.08, 5)
    assert device.counts["sflu_symbolic"] > 1


def test_matrix_whose_rows_have_no_room():
    n = 3_000_000
    ptr = np.zeros(n + 1, np.int64)
    with pytest.raises(EngineUnavailableError, match="marking 3,000,000 rows takes"):
        sflu_symbolic.lu_pattern(EmulatedDevice(), ptr, np.empty(0, np.int32), *2 * [np.arange(n, dtype=np.int32)])
