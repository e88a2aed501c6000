"""The column engines as the tests drive them, in the emulator and on a device: their matrices, ways and errors."""

import numpy as np
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import _core_testing, gallery
from gpusplu.engines.crisscross.engine import CrisscrossEngine
from gpusplu.engines.glu.engine import GluEngine
from gpusplu.engines.glu.program import Tuning as GluTuning
from gpusplu.engines.registry import registered
from gpusplu.engines.sflu import symbolic as sflu_symbolic
from gpusplu.engines.sflu.engine import SfluEngine
from gpusplu.engines.sflu.program import Tuning

from .small_matrices import EPS, canonical, random_matrix
from .solves import check_against_cpu, check_solves, on_host

#: Real ones.
CIRCUITS = [
    *("add20", "adder_dcop_05", "bayer10", "case3375wp_nrjac", "case_ACTIVSg10k_nrjac", "faer_matrix_n19168"),
    *("ibmpg1t_mna_tran", "ibmpg2t_mna_tran", "memplus", "nnc1374", "rajat19", "sherman2", "steam2"),
]


def circuit(dtype):
    A = canonical(gallery.named("circuit:9x9"))
    if np.dtype(dtype).kind == "c":
        A = canonical(A @ sp.diags_array(np.exp(1j * np.arange(A.shape[0]))))
    return A.astype(dtype)


def bordered(dtype, n=600):
    """Most columns are short; the last rows and columns are sums of very many terms."""
    rng = np.random.default_rng(0)
    dense = np.diag(rng.uniform(3, 4, n))
    dense[-5:] += rng.uniform(-1, 1, (5, n)) / n
    dense[:, -5:] += rng.uniform(-1, 1, (n, 5)) / n
    return canonical(sp.csc_array(dense)).astype(dtype)


MATRICES = {
    "random": lambda dtype: random_matrix(60, dtype),
    "circuit": circuit,
    "filled": lambda dtype: random_matrix(150, dtype, density=0.08),
    "wide": lambda dtype: random_matrix(200, dtype, density=0.002),
    "bordered": bordered,
    "one": lambda dtype: canonical(sp.csc_array([[2.0]])).astype(dtype),
    "diagonal": lambda dtype: canonical(sp.eye_array(5)).astype(dtype),
    "triangular": lambda dtype: canonical(sp.triu(np.ones((5, 5)))).astype(dtype),  # there are no places of updates
}


def glu(A, mode=None, **options):
    """A factor by one mode, or by the modes that glu chooses."""
    with registered(GluEngine(tuning=GluTuning(mode=mode))):
        return gs.splu(A, engine="glu", **options)


def sflu(A, **tuning):
    with registered(SfluEngine(tuning=Tuning(**tuning))):
        return gs.splu(A, engine="sflu")


def crisscross(A, division, tuning=Tuning(), **options):  # noqa: B008 (frozen)
    """A factor whose trailing block begins at this column."""
    with registered(CrisscrossEngine(division=division, tuning=tuning)):
        return gs.splu(A, engine="crisscross", **options)


def on_device(factor):
    """Whether the device solves; deferred calls are refused otherwise."""
    import cupy  # or what stands in for it

    try:
        factor.solve(cupy.asarray(np.ones(factor.shape[0], factor.dtype)), check="later")
    except RuntimeError as error:
        if "need the pivots of the CPU engine" not in str(error):
            raise
        return False
    factor.check()
    return True


def harder(A, seed=0):
    """The pattern of A with values for which its pivots are bad; `seed` may be a generator."""
    rng = np.random.default_rng(seed)
    B = A.copy()
    B.data = rng.normal(size=A.nnz) * 10.0 ** rng.integers(-6, 7, A.nnz)
    return B


def lu_error(factor, A):
    """Largest entry of L U - B in the program's own numbers, relative to the largest of |L| |U|, in units of eps."""
    core = factor._core
    program, buffers = core.commands.program, core.commands.buffers
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


def check_mode(A, mode, times, columns):
    """glu by one mode, refactored so many times; the factor."""
    factor = glu(A, mode)
    assert lu_error(factor, A) < 100
    for _ in range(times):  # levels that run into each other show now and then
        factor.refactor(A.data)
        assert lu_error(factor, A) < 100
    check_solves(A, factor, columns)
    assert on_device(factor)
    return factor


def check_bad_pivots(make, A, times):
    """Values for which pivots are bad, again and again; the factor."""
    factor, rng = make(A), np.random.default_rng(0)
    for _ in range(times):
        B = harder(A, rng)
        factor.refactor(B.data)
        check_solves(B, factor)
    assert factor.stats.n_repivoted > 0
    return factor


def check_tuned_alike(A, b, tunings):
    """sflu has the same bits however columns are grouped and launched."""
    x = {trans: on_host(sflu(A).solve(b, trans)) for trans in "NT"}
    for tuning in tunings:
        for trans, expected in x.items():
            assert on_host(sflu(A, **tuning).solve(b, trans)).tobytes() == expected.tobytes(), (tuning, trans)


def check_trailing_block(cupy, A, order, columns):
    """crisscross with a trailing block of this order; the factor."""
    division = A.shape[0] - order
    with registered(CrisscrossEngine(division=division)):
        factor = check_against_cpu(cupy, A, gs.splu, "crisscross", columns)
    assert factor.stats.division == division
    assert factor.stats.n_repivoted == 0
    return factor


def check_lu_pattern(device, ptr, ind, *perms):
    """sflu's symbolic phase on a device against the core's."""
    (l_ptr, l_ind), (u_ptr, u_ind), _ = _core_testing.lu_pattern(ptr, ind, *perms)
    with device:
        found = sflu_symbolic.lu_pattern(device, ptr, ind, *perms)
    assert np.array_equal(np.diff(found.col_ptr), np.diff(l_ptr) + np.diff(u_ptr) - 1)
    for j in range(len(found.diag)):
        begin, diagonal, end = found.col_ptr[j], found.diag[j], found.col_ptr[j + 1]
        assert np.array_equal(found.row[begin : diagonal + 1], u_ind[u_ptr[j] : u_ptr[j + 1]])
        assert np.array_equal(found.row[diagonal:end], l_ind[l_ptr[j] : l_ptr[j + 1]])
