"""The crisscross engine on a device: as accurate as the CPU engine wherever the columns are divided, and repeatable."""

import numpy as np
import pytest
from test_answers import rhs, turned

import gpusplu as gs
from gpusplu import gallery
from gpusplu.cli.report import backward_error
from gpusplu.engines.crisscross import CrisscrossProgram

pytestmark = pytest.mark.gpu

CIRCUITS = [
    *("add20", "adder_dcop_05", "bayer10", "case3375wp_nrjac", "case_ACTIVSg10k_nrjac", "faer_matrix_n19168"),
    *("ibmpg1t_mna_tran", "ibmpg2t_mna_tran", "memplus", "nnc1374", "rajat19", "sherman2", "steam2"),
]


def check(cupy, A, columns):
    here, there = (gs.splu(A, engine=engine) for engine in ("cpu", "crisscross"))
    there.refactor(cupy.asarray(A.data))
    for shape in columns:
        b = rhs(A, shape)
        for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
            x = there.solve(cupy.asarray(b), trans)
            limit = max(20 * float(np.finfo(A.dtype).eps), 10 * backward_error(op, here.solve(b, trans), b))
            assert backward_error(op, x.get(), b) < limit, (trans, shape)
    assert there.engine == "crisscross"
    return there


@pytest.mark.parametrize("name", CIRCUITS)
def test_circuits(cupy, real_matrix, name):
    check(cupy, real_matrix(name), [(), (4,)])


@pytest.mark.parametrize("corner", [0, 1, 30, 150, 400, 1600])
@pytest.mark.parametrize("dtype", "fdFD")
def test_corners(cupy, monkeypatch, corner, dtype):
    A = turned(gallery.named("rlc:40x40"), dtype)
    monkeypatch.setattr(CrisscrossProgram, "forced", A.shape[0] - corner)
    factor = check(cupy, A, [(), (3,), (45,)])
    assert factor.stats.division == A.shape[0] - corner
    assert factor.stats.n_repivoted == 0


def test_columns_of_the_corner_by_the_sparse_kernel(cupy, monkeypatch):
    A = gallery.named("rlc:40x40")
    monkeypatch.setattr(CrisscrossProgram, "forced", A.shape[0] - 200)
    monkeypatch.setattr(CrisscrossProgram, "most_terms", -1)
    check(cupy, A, [()])


def test_bits_repeat(cupy, monkeypatch):
    A = gallery.named("rlc:60x60")
    monkeypatch.setattr(CrisscrossProgram, "forced", A.shape[0] - 300)
    b = cupy.asarray(rhs(A, ()))
    factor = gs.splu(A, engine="crisscross")
    x = factor.solve(b).get()
    for _ in range(20):
        factor.refactor(cupy.asarray(A.data))
        assert factor.solve(b).get().tobytes() == x.tobytes()


def test_memory_does_not_grow(cupy, monkeypatch):
    A = gallery.named("circuit:30x30")
    monkeypatch.setattr(CrisscrossProgram, "forced", A.shape[0] - 100)
    factor, b = gs.splu(A, engine="crisscross"), cupy.asarray(rhs(A, ()))
    values = cupy.asarray(A.data)
    factor.refactor_solve(values, b)
    before = cupy.get_default_memory_pool().used_bytes()
    for _ in range(100):
        factor.refactor_solve(values, b)
    assert cupy.get_default_memory_pool().used_bytes() <= before
