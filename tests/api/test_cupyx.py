"""install, uninstall and enabled reach cupyx's functions when somebody has imported them, here a stand-in's."""

import contextlib
import functools
import importlib
import importlib.util
import inspect
import pickle
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import gpusplu as gs
from gpusplu.common.timing import backward_error
from gpusplu.install import cupyx_names as _cupyx
from support.cupys import MODULE, THEIRS, Cupyx
from support.processes import run
from support.small_matrices import EPS, random_matrix, rhs


def test_imported_before_and_after(stand_in):
    gs.install()
    assert not {"cupy", "cupyx"} & set(sys.modules)
    cupyx = Cupyx()
    for _ in range(2):
        assert cupyx.calls() == []
        gs.uninstall()
        assert cupyx.calls() == THEIRS
        gs.install()


def test_imported_inside_enabled(stand_in):
    gs.install()
    gs.uninstall()
    with gs.enabled():
        cupyx = Cupyx()
        assert cupyx.calls() == []
        with ThreadPoolExecutor(1) as other:
            seen = other.submit(cupyx.calls).result()
        assert seen == ([] if getattr(sys.flags, "thread_inherit_context", False) else THEIRS)
    assert cupyx.calls() == THEIRS


def test_a_reload_makes_functions_that_are_ours(cupyx):
    gs.install()
    old = cupyx.linalg.splu
    importlib.reload(sys.modules[f"{MODULE}._solve"])
    module = importlib.reload(cupyx.linalg)
    again = Cupyx()
    assert module.splu is again.linalg.splu is not old
    assert again.calls() == []
    gs.uninstall()
    assert again.calls() == THEIRS
    assert not hasattr(old, "__wrapped__") and old.__kwdefaults__ is None


def test_the_module_is_as_its_own_loader_made_it(stand_in):
    gs.install()
    module = importlib.import_module(MODULE)
    assert type(module.__loader__) is type(module.__spec__.loader) is type(importlib.import_module("json").__loader__)
    assert "by value" in inspect.getsource(module)
    assert importlib.util.find_spec(MODULE) is module.__spec__


def test_nothing_is_imported_and_nothing_found_without_cupy():
    run(
        "import sys, gpusplu; before = len(sys.meta_path); gpusplu.install(); gpusplu.uninstall(); gpusplu.install()\n"
        "with gpusplu.enabled(): pass\n"
        "assert len(sys.meta_path) == before + 1; assert not {'cupy', 'cupyx'} & set(sys.modules)\n"
        "sys.modules['cupyx'] = None\n"
        "try:\n import cupyx.scipy.sparse.linalg\nexcept ImportError: pass\nelse: raise AssertionError"
    )


def test_a_thread_that_is_in_the_middle_of_the_import(stand_in, monkeypatch):
    """The module is there, its functions are not, and nobody watched when its import began."""
    monkeypatch.setattr(sys, "meta_path", [f for f in sys.meta_path if not isinstance(f, _cupyx.Watch)])
    begun, goes_on = threading.Event(), threading.Event()

    class Slow:
        def find_spec(self, name, path=None, target=None):
            if name == f"{MODULE}._solve":
                begun.set()
                goes_on.wait()

    sys.meta_path.insert(0, Slow())
    importing = threading.Thread(target=importlib.import_module, args=(MODULE,))
    installing = threading.Thread(target=gs.install)
    importing.start()
    begun.wait()
    assert MODULE in sys.modules
    installing.start()
    time.sleep(0.05)
    goes_on.set()
    for thread in (importing, installing):
        thread.join()
    assert Cupyx().calls() == []


def test_references_from_before_are_reached(cupyx):
    spsolve = cupyx.linalg.spsolve
    references = {
        "by value": sys.modules[f"{MODULE}._solve"].spsolve,
        "default argument": lambda A, b, solver=spsolve: solver(A, b),
        "partial": functools.partial(spsolve),
        "decorated": functools.wraps(spsolve)(lambda *args: spsolve(*args)),
        "by keywords": lambda A, b: spsolve(A=A, b=b),
    }
    A, b = cupyx.matrix(), cupyx.cupy.asarray(np.ones(12))
    for kind, call in references.items():
        cupyx.asked.clear()
        with gs.enabled():
            call(A, b)
        assert cupyx.asked == [], kind
        call(A, b)
        assert cupyx.asked == ["spsolve"], kind


def test_what_is_no_function_is_left_alone(cupyx, monkeypatch):
    monkeypatch.setattr(cupyx.linalg, "splu", np.linalg.solve)
    monkeypatch.setattr(cupyx.linalg, "spsolve", 1)
    with gs.enabled():
        assert not hasattr(np.linalg.solve, "_gpusplu")
        assert cupyx.linalg.spsolve == 1
        assert hasattr(cupyx.linalg.factorized, "__wrapped__")


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
    assert lu.shape == A.shape and lu.nnz >= lu.L.nnz + lu.U.nnz - 12
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
    """Integers are none of ours: CuPy's functions use SciPy's, and wrap what those return."""
    host, whole = random_matrix(12, "f"), cupyx.matrix(sp.eye_array(12, dtype="i"))
    A, b = cupyx.matrix(host), cupyx.cupy.asarray(rhs(12, "d"))
    gs.install()
    for x in (cupyx.linalg.splu(A).solve(b), cupyx.linalg.spsolve(A, b), cupyx.linalg.factorized(A)(b)):
        assert x.dtype == np.float32
        assert backward_error(host, x.get(), b.get().astype("f")) < 50 * EPS["f"]
    assert cupyx.asked == [] and type(cupyx.linalg.splu(whole)) is cupyx.linalg.SuperLU
    for x in (cupyx.linalg.factorized(whole)(b), cupyx.linalg.spsolve(whole, b)):
        np.testing.assert_array_equal(x.get(), b.get())
    assert cupyx.asked == ["splu", "factorized", "splu", "solve", "spsolve"]


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
