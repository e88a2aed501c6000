"""The SFLU engine on a device: as accurate as the CPU engine, repeatable, no growth of memory."""

import numpy as np
import pytest
from column_engines import CIRCUITS, check
from test_answers import rhs, turned

import gpusplu as gs
from gpusplu import _core, _core_testing, gallery
from gpusplu.cuda import devices
from gpusplu.engines import sflu_symbolic
from gpusplu.engines.sflu import SfluProgram

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", ["circuit:20x20", "rlc:40x40", "power:40x40", "convdiff:20x20"])
def test_gallery(cupy, name, dtype):
    check(cupy, "sflu", turned(gallery.named(name), dtype), [(), (1,), (3,), (45,)])


@pytest.mark.parametrize("name", CIRCUITS)
def test_circuits(cupy, real_matrix, name):
    check(cupy, "sflu", real_matrix(name), [(), (4,)])


def test_bits_repeat_whatever_waits_for_what(cupy, monkeypatch):
    A = gallery.named("rlc:60x60")
    b = cupy.asarray(rhs(A, ()))
    factor = gs.splu(A, engine="sflu")
    x = factor.solve(b).get()
    for _ in range(20):
        factor.refactor(cupy.asarray(A.data))
        assert factor.solve(b).get().tobytes() == x.tobytes()
    for switch, value in (("by_levels", True), ("grouped", False)):
        monkeypatch.setattr(SfluProgram, switch, value)
        assert gs.splu(A, engine="sflu").solve(b).get().tobytes() == x.tobytes()


@pytest.mark.parametrize("name", ["add20", "bayer10", "ibmpg1t_mna_tran", "memplus"])
def test_symbolic_phase(cupy, real_matrix, name):
    A = real_matrix(name)
    arrays = A.indptr.astype(np.int64), A.indices.astype(np.int32)
    core = _core.analyze_columns(*arrays, A.data, ordering="auto", perm=None, matching=True)
    perms = np.asarray(core.row_perm), np.asarray(core.col_perm)
    device = devices.open_device(None)
    with device:
        found = sflu_symbolic.lu_pattern(device, *arrays, *perms)
    (l_ptr, l_ind), (u_ptr, u_ind), _ = _core_testing.lu_pattern(*arrays, *perms)
    columns = np.repeat(np.arange(len(found.diag)), np.diff(found.col_ptr))
    assert np.array_equal(np.diff(found.col_ptr), np.diff(l_ptr) + np.diff(u_ptr) - 1)
    assert np.array_equal(found.row[found.row >= columns], l_ind)
    assert np.array_equal(found.row[found.row <= columns], u_ind)


def test_memory_does_not_grow(cupy):
    A = gallery.named("circuit:30x30")
    factor, b = gs.splu(A, engine="sflu"), cupy.asarray(rhs(A, ()))
    values = cupy.asarray(A.data)
    factor.refactor_solve(values, b)
    used = cupy.get_default_memory_pool().used_bytes()
    for _ in range(100):
        x = factor.refactor_solve(values, b)
    assert cupy.get_default_memory_pool().used_bytes() <= used + 2 * x.nbytes
