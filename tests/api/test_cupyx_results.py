"""What cupyx's functions do when they are ours, with a stand-in for CuPy (tests/gpu/test_cupyx.py has the real one)."""

import contextlib
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import gpusplu as gs
from gpusplu.common.timing import backward_error
from support.small_matrices import EPS, random_matrix, rhs


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("columns", [(), (1,), (3,)])
def test_solutions(cupyx, dtype, kind, columns):
    host, b = random_matrix(30, dtype), rhs(30, dtype, columns)
    A, on_device = cupyx.matrix(host, kind), cupyx.cupy.asarray(b)
    gs.install()
    lu = cupyx.linalg.splu(A)
    for trans, op in (("N", host), ("T", host.T), ("H", host.conj().T)):
        x = lu.solve(on_device, trans)
        assert (type(x), x.dtype, x.shape, x.flags.f_contiguous) == (cupyx.cupy.ndarray, dtype, b.shape, True)
        assert backward_error(op, x.get(), b) < 50 * EPS[dtype]
    with pytest.warns(sp.SparseEfficiencyWarning, match="CSR") if kind != "csr" else contextlib.nullcontext():
        x = cupyx.linalg.spsolve(A, on_device)
    assert (type(x), x.dtype, x.shape, x.flags.f_contiguous) == (cupyx.cupy.ndarray, dtype, b.shape, True)
    assert backward_error(host, x.get(), b) < 50 * EPS[dtype]
    assert cupyx.asked == []


def test_a_factor_is_one_of_cupys(cupyx):
    A = cupyx.matrix()
    with gs.enabled():
        lu = cupyx.linalg.splu(A)
    assert isinstance(lu, cupyx.linalg.SuperLU)
    assert (lu.shape, lu.nnz) == (A.shape, lu._factor.nnz)
    assert isinstance(lu.L, cupyx.sparse.csr_matrix) and isinstance(lu.U, cupyx.sparse.csr_matrix)
    assert lu.L is lu.L
    assert {type(perm) for perm in (lu.perm_r, lu.perm_c)} == {cupyx.cupy.ndarray}
    assert lu.perm_r.dtype == np.int32
    product = (lu.L.host @ lu.U.host)[lu.perm_r.get()][:, lu.perm_c.get()]
    assert abs(product - A.host).max() < 1e-13
    assert (lu.perm_r[lu._perm_r_rev] == np.arange(12)).all() and (lu.perm_c[lu._perm_c_rev] == np.arange(12)).all()
    b = cupyx.cupy.asarray(rhs(12))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(lu)).solve(b), lu.solve(b))


def test_right_hand_sides_are_cast_as_cupy_casts(cupyx):
    host = random_matrix(12, "f")
    A, b = cupyx.matrix(host), cupyx.cupy.asarray(rhs(12, "d"))
    gs.install()
    for x in (cupyx.linalg.splu(A).solve(b), cupyx.linalg.spsolve(A, b), cupyx.linalg.factorized(A)(b)):
        assert x.dtype == np.float32
        assert backward_error(host, x.get(), b.get().astype("f")) < 50 * EPS["f"]


def test_arguments_of_splu_count(cupyx):
    A = cupyx.matrix()
    gs.install()
    lu = cupyx.linalg.splu(A, "NATURAL", options={"SymmetricMode": True})
    assert (lu.perm_c == np.arange(12)).all()
    with pytest.raises(ValueError, match="ColPerm"):
        cupyx.linalg.splu(A, permc_spec="nonsense")
    with pytest.raises(TypeError):
        cupyx.linalg.splu(A, options={"nonsense": 1})
    assert cupyx.asked == []


def test_what_is_not_for_us_goes_to_cupy(cupyx):
    A, b = cupyx.matrix(), cupyx.cupy.asarray(np.ones(12))
    truths, wide = cupyx.matrix(sp.eye_array(12, dtype="?")), cupyx.matrix(sp.eye_array(12, 13))
    gs.install()
    for function in (cupyx.linalg.splu, cupyx.linalg.factorized, lambda A: cupyx.linalg.spsolve(A, b)):
        for bad, error in ((A.host, TypeError), (wide, ValueError), (truths, TypeError)):
            cupyx.asked.clear()
            with pytest.raises(error, match="A "):
                function(bad)
            assert cupyx.asked
    with pytest.raises(TypeError, match="on a device"):
        cupyx.linalg.spsolve(A, np.ones(12))
    with pytest.raises(ValueError, match="do not match"):
        cupyx.linalg.spsolve(A, cupyx.cupy.asarray(np.ones(11)))
    lu = cupyx.linalg.splu(A)
    with pytest.raises(TypeError, match="on a device"):
        lu.solve(np.ones(12))
    with pytest.raises(ValueError, match="none of three"):
        lu.solve(b, "n")


def test_values_that_are_not_finite_go_to_cupy(cupyx):
    """And from there to SciPy's own, whose factors CuPy wraps."""
    bad = random_matrix(12)
    bad.data[3] = np.inf
    A, b = cupyx.matrix(bad), cupyx.cupy.asarray(np.ones(12))
    gs.install()
    assert type(cupyx.linalg.splu(A)) is cupyx.linalg.SuperLU
    assert cupyx.linalg.factorized(A).__func__ is cupyx.linalg.SuperLU.solve
    cupyx.linalg.spsolve(A, b)
    assert cupyx.asked == ["splu", "factorized", "splu", "spsolve"]
    assert isinstance(spla.splu(bad.tocsc()), spla.SuperLU)
    assert isinstance(spla.splu(random_matrix(12)), gs.LUFactor)  # SciPy's are ours again


def test_what_cupy_takes_and_we_do_not(cupyx):
    """Its functions use SciPy's, and wrap what those return."""
    A, b = cupyx.matrix(sp.eye_array(12, dtype="i")), cupyx.cupy.asarray(np.ones(12))
    with gs.enabled():
        assert type(cupyx.linalg.splu(A)) is cupyx.linalg.SuperLU
        for x in (cupyx.linalg.factorized(A)(b), cupyx.linalg.spsolve(A, b)):
            np.testing.assert_array_equal(x.get(), b.get())
    assert cupyx.asked == ["splu", "factorized", "splu", "solve", "spsolve"]


def test_singular_matrices(cupyx):
    singular = random_matrix(12).tolil()
    singular[:, 4] = 0
    A, b = cupyx.matrix(singular.tocsr(), "csc"), cupyx.cupy.asarray(np.ones(12))
    gs.install()
    for function in (cupyx.linalg.splu, cupyx.linalg.factorized):
        with pytest.raises(RuntimeError, match="Factor is exactly singular"):
            function(A)
    assert cupyx.asked == []
    with pytest.warns((spla.MatrixRankWarning, sp.SparseEfficiencyWarning)) as caught:
        x = cupyx.linalg.spsolve(A, b)
    assert cupyx.asked == ["spsolve"]
    assert np.isnan(x).all()  # of the stand-in
    assert sum("CSR" in str(warning.message) for warning in caught) == 1
    assert {warning.filename for warning in caught if "CSR" in str(warning.message)} == {__file__}


def test_incomplete_factors_stay_cupys(cupyx):
    with gs.enabled():
        assert not hasattr(cupyx.linalg.spilu, "__wrapped__")
        assert type(cupyx.linalg.spilu(cupyx.matrix())) is cupyx.linalg.SuperLU


def test_patterns_are_remembered(cupyx):
    A, b = cupyx.matrix(), cupyx.cupy.asarray(np.ones(12))
    with gs.enabled():
        for _ in range(3):
            cupyx.linalg.spsolve(A, b)
    assert (gs.cache_info().hits, gs.cache_info().misses) == (2, 1)
