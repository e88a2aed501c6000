"""The pattern of L + U from the kernel, on an emulated device, against the CPU's."""

import numpy as np
import pytest
from emulated_device import EmulatedDevice
from symbolic_reference import random_pattern

from gpusplu import _core_testing
from gpusplu.engines import sflu_symbolic
from gpusplu.errors import DeviceMemoryError


def check(device, n, density, seed):
    _, *arrays = random_pattern(n, density, seed)
    rng = np.random.default_rng(seed + 1)
    perms = [rng.permutation(n).astype(np.int32) for _ in range(2)]
    (l_ptr, l_ind), (u_ptr, u_ind), _ = _core_testing.lu_pattern(*arrays, *perms)
    found = sflu_symbolic.lu_pattern(device, *arrays, *perms)
    for j in range(n):
        begin, diagonal, end = found.col_ptr[j], found.diag[j], found.col_ptr[j + 1]
        assert found.row[begin : diagonal + 1].tolist() == u_ind[u_ptr[j] : u_ptr[j + 1]].tolist()
        assert found.row[diagonal:end].tolist() == l_ind[l_ptr[j] : l_ptr[j + 1]].tolist()


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
    with pytest.raises(DeviceMemoryError):
        sflu_symbolic.lu_pattern(EmulatedDevice(), ptr, np.empty(0, np.int32), *2 * [np.arange(n, dtype=np.int32)])
