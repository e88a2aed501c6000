"""The glu engine on a CUDA device."""

import numpy as np
import pytest
import scipy.sparse as sp
from small_matrices import EPS, backward_error, canonical, random_matrix, rhs

import gpusplu as gs
from gpusplu import gallery
from gpusplu.engines.glu.engine import GluEngine
from gpusplu.engines.glu.program import MODES, Tuning
from gpusplu.engines.registry import registered

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("cupy")]


def lu_error(factor, A):
    """Largest entry of L U - B in the program's own numbers, relative to the largest of |L| |U|."""
    core = factor._core
    program, buffers = core._recorded.program, core._recorded.buffers
    plan, found = program.plan, np.empty(program.plan.nnz, A.dtype)
    stream = program.device.own_stream()
    stream.copy(found.ctypes.data, buffers.own["factor"].pointer, found.nbytes)
    stream.synchronize()
    lu = np.zeros(A.shape, A.dtype)
    lu[plan.row, np.repeat(np.arange(plan.n), np.diff(plan.col_ptr))] = found
    L, U = np.tril(lu, -1) + np.eye(plan.n), np.triu(lu)
    rows = plan.row_scale if plan.row_scale.size else np.ones(plan.n)
    cols = plan.col_scale if plan.col_scale.size else np.ones(plan.n)
    B = (rows[:, None] * A.toarray() * cols)[plan.row_perm][:, plan.col_perm]
    return np.abs(L @ U - B).max() / (np.abs(L) @ np.abs(U)).max() / EPS[A.dtype.char]


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("mode", [None, *MODES])
@pytest.mark.parametrize("name", ["circuit:30x30", "random"])
def test_modes(mode, dtype, name):
    A = random_matrix(400, dtype) if name == "random" else canonical(gallery.named(name)).astype(dtype)
    with registered(GluEngine(tuning=Tuning(mode))):
        factor = gs.splu(A, engine="glu")
    assert lu_error(factor, A) < 100
    for _ in range(20):  # levels that run into each other show now and then
        factor.refactor(A.data)
        assert lu_error(factor, A) < 100
    b = rhs(A.shape[0], dtype, (3,))
    for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
        assert backward_error(op, factor.solve(b, trans), b) < 100 * EPS[dtype]
    assert not factor._core._on_cpu


@pytest.mark.parametrize(
    "name", ["add20", "adder_dcop_05", "bayer10", "case3375wp_nrjac", "memplus", "rajat19", "sherman5"]
)
def test_real_matrices(real_matrix, name):
    A = canonical(real_matrix(name)).astype("d")
    factor = gs.splu(A, engine="glu")
    b = rhs(A.shape[0], "d")
    for trans, op in (("N", A), ("T", A.T)):
        assert backward_error(op, factor.solve(b, trans), b) < 100 * EPS["d"]
    A.data *= np.random.default_rng(0).uniform(0.9, 1.1, A.shape[0])[A.indices]  # the pivots stay good
    factor.refactor(A.data)
    assert backward_error(A, factor.solve(b), b) < 100 * EPS["d"]
    assert factor.stats.n_repivoted == 0
    assert not factor._core._on_cpu


@pytest.mark.parametrize("name", ["add20_seq", "mem_plus_seq", "voter_seq"])
def test_sequences(real_sequence, name):
    """Newton steps of a circuit, whose pivots may have to change on the way."""
    indptr, indices, shape, data = real_sequence(name)
    A = sp.csc_array((data[0].astype("d"), indices, indptr), shape=shape)
    factor, b = gs.splu(A, engine="glu"), rhs(shape[0], "d")
    for values in data[:: max(1, len(data) // 10)]:
        A.data = values.astype("d")
        factor.refactor(A.data)
        assert backward_error(A, factor.solve(b), b) < 1e-12
    assert not factor._core._on_cpu


def test_bad_pivots_are_chosen_anew():
    A = random_matrix(300)
    factor = gs.splu(A, engine="glu")
    rng = np.random.default_rng(0)
    for _ in range(3):
        A.data = rng.normal(size=A.nnz) * 10.0 ** rng.integers(-6, 7, A.nnz)
        factor.refactor(A.data)
        b = rhs(300)
        assert backward_error(A, factor.solve(b), b) < 100 * EPS["d"]
    assert factor.stats.n_repivoted > 0
