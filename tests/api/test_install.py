"""install, uninstall, enabled: what is switched, for whom, and that all of it is undone."""

import asyncio
import contextlib
import contextvars
import importlib
import importlib.util
import pickle
import subprocess
import sys
import threading
import warnings
from types import ModuleType

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import gpusplu as gs
from gpusplu import _scipy, compat
from support.scipy_names import CALLS, SITES, A


@pytest.fixture(autouse=True)
def originals():
    """Every test starts and ends with SciPy untouched."""
    for name in SITES:
        importlib.import_module(name)
    before = {(name, f): getattr(sys.modules[name], f) for name, functions in SITES.items() for f in functions}
    assert not any(hasattr(function, "__wrapped__") for function in before.values())
    yield before
    gs.uninstall()
    for (name, f), function in before.items():
        assert getattr(sys.modules[name], f) is function


def is_ours():
    return isinstance(spla.splu(A), gs.LUFactor)


def test_every_known_site_is_ours(originals, asked):
    gs.install()
    for (name, f), function in originals.items():
        assert getattr(sys.modules[name], f) is function
        function(*CALLS[f])
        assert asked.pop() == f
    gs.uninstall()
    for (_, f), function in originals.items():
        function(*CALLS[f])
    assert asked == []


def test_any_order_of_install_and_enabled():
    with gs.enabled():
        gs.install()
        gs.uninstall()
        assert is_ours()
        gs.install()
    assert is_ours()
    gs.uninstall()
    assert not is_ours()
    context = gs.enabled()
    gs.install()
    context.__enter__()
    gs.uninstall()
    assert is_ours()
    context.__exit__(None, None, None)
    assert not is_ours()


def test_install_twice_uninstall_once():
    gs.install()
    gs.install()
    assert is_ours()
    gs.uninstall()
    assert not is_ours()
    gs.uninstall()


def test_names_in_callers_modules():
    module = ModuleType("somebodys_module")
    module.fast_lu = spla.splu
    sys.modules[module.__name__] = module
    try:
        with gs.enabled():
            assert isinstance(module.fast_lu(A), gs.LUFactor)
        assert module.fast_lu is spla.splu
    finally:
        del sys.modules[module.__name__]


def test_a_function_that_was_kept_is_scipys_afterwards():
    with gs.enabled():
        kept = spla.splu
    assert not isinstance(kept(A), gs.LUFactor)


def test_enabled_nests_and_survives_errors():
    with gs.enabled():
        with pytest.raises(KeyError), gs.enabled():
            raise KeyError
        assert is_ours()
    assert not is_ours()


def test_enabled_is_for_this_thread_only():
    seen = {}
    with gs.enabled():
        thread = threading.Thread(target=lambda: seen.setdefault("other", is_ours()))
        thread.start()
        thread.join()
        copied = contextvars.copy_context()
    assert seen == {"other": bool(getattr(sys.flags, "thread_inherit_context", False))}
    assert not copied.run(is_ours)  # SciPy's bodies are back once nobody holds them


def test_enabled_is_for_this_task_only():
    async def inside(entered, leave):
        with gs.enabled():
            entered.set()
            await leave.wait()
            return is_ours()

    async def outside(entered, leave):
        await entered.wait()
        found = is_ours()
        leave.set()
        return found

    async def both():
        entered, leave = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(inside(entered, leave), outside(entered, leave))

    assert asyncio.run(both()) == [True, False]


def test_install_is_for_all_threads():
    seen = []
    gs.install()
    thread = threading.Thread(target=lambda: seen.append(is_ours()))
    thread.start()
    thread.join()
    assert seen == [True]


def test_use_solver_is_a_matter_of_the_thread_where_scipy_has_it_so():
    def outcome(solve):
        try:
            return np.allclose(A @ solve(), np.ones(3))
        except RuntimeError as error:
            return str(error)

    def outcomes():
        found = []
        for solve in (lambda: spla.spsolve(A, np.ones(3)), lambda: spla.factorized(A)(np.ones(3))):
            thread = threading.Thread(target=lambda solve=solve: found.append(outcome(solve)))
            thread.start()
            thread.join()
            found.append(outcome(solve))
        return found

    spla.use_solver(useUmfpack=True)
    try:
        scipys = outcomes()
        gs.install()
        assert outcomes() == scipys
        assert "umfpack not installed" in scipys[1] and "umfpack not installed" in scipys[3]
    finally:
        spla.use_solver(useUmfpack=False)


def test_triangles_are_of_the_kind_that_scipys_are(monkeypatch):
    assert compat.triangle_kind() is type(spla.splu(A).L)
    with gs.enabled():
        lu = spla.splu(A)
        assert type(lu.L) is type(lu.U) is compat.triangle_kind()
        monkeypatch.setattr(compat, "triangle_kind", lambda: sp.csc_matrix)  # SciPy 1.13
        lu, other = spla.splu(A), spla.splu(2 * A)
    assert type(lu.L) is type(lu.U) is sp.csc_matrix and lu.L is lu.L and lu.U is lu.U
    np.testing.assert_allclose((lu.L * lu.U).toarray()[lu.perm_r][:, lu.perm_c], A.toarray())
    np.testing.assert_allclose((other.L * other.U).toarray()[lu.perm_r][:, lu.perm_c], 2 * A.toarray())
    lu.refactor(2 * A.data)
    np.testing.assert_allclose((lu.L * lu.U).toarray()[lu.perm_r][:, lu.perm_c], 2 * A.toarray())


def test_other_names_are_untouched():
    with gs.enabled():
        assert isinstance(spla.spilu(A), spla.SuperLU)
        assert not hasattr(spla.spilu, "__wrapped__")


def test_scipy_through_us():
    """ARPACK's shift-invert, Radau and solve_bvp go through their own bindings."""
    from scipy.integrate import solve_ivp

    n = 60
    K = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1], format="csc")
    expected = 2 - 2 * np.cos(np.pi * np.arange(1, 4) / (n + 1))
    with gs.enabled():
        found = np.sort(spla.eigsh(K, k=3, sigma=0, return_eigenvectors=False))
        solution = solve_ivp(lambda t, y: -(K @ y), (0, 1), np.ones(n), method="Radau", jac=-K, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    reference = spla.expm_multiply(-K, np.ones(n))
    np.testing.assert_allclose(solution.y[:, -1], reference, atol=1e-5)


def test_perm_holds_its_factor_as_scipys_does():
    with gs.enabled():
        lu = spla.splu(A)
    count = sys.getrefcount(lu)
    perm = lu.perm_r
    assert sys.getrefcount(lu) == count + 1
    del perm
    assert sys.getrefcount(lu) == count
    ours = gs.splu(A)
    count = sys.getrefcount(ours)
    perm = ours.perm_r
    assert sys.getrefcount(ours) == count
    del perm


@pytest.mark.parametrize(("trans", "error"), [("", TypeError), ("X", ValueError), (None, TypeError)])
def test_a_direction_is_refused_before_a_right_hand_side(trans, error):
    A, told = sp.eye_array(3, format="csc"), []
    for within in (contextlib.nullcontext, gs.enabled):
        with within(), pytest.raises(error) as caught:
            spla.splu(A).solve(np.ones(3, complex), trans)
        told.append(str(caught.value))
    assert told[0] == told[1]


def test_lazy_modules_are_not_woken():
    code = """
import importlib.util, sys
spec = importlib.util.find_spec("turtle")
spec.loader = importlib.util.LazyLoader(spec.loader)
module = importlib.util.module_from_spec(spec)
sys.modules["turtle"] = module
spec.loader.exec_module(module)
import gpusplu
gpusplu.install()
assert type(sys.modules["turtle"]).__name__ == "_LazyModule"
"""
    if importlib.util.find_spec("turtle") is None:
        pytest.skip("no turtle in this Python")
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_matrices_that_scipy_gets_back_warn_as_often_as_scipy():
    bad = sp.csr_array(np.array([[1.0, 2, 0], [0, np.nan, 1], [1, 0, 3]]))
    many = sp.csr_array(np.eye(3)[:, :2])

    def warned(name, *arguments):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with contextlib.suppress(RuntimeError):  # singular, says SuperLU
                getattr(spla, name)(*arguments)
        return [warning.category for warning in caught]

    for given in (bad, bad.tocsc(), bad.tocoo(), bad.tolil()):
        for call in (("splu", given), ("factorized", given), ("spsolve", given, np.ones(3)), ("spsolve", given, many)):
            expected = warned(*call)
            with gs.enabled():
                assert warned(*call) == expected, (call[0], given.format)


def test_functions_are_pickled_whatever_is_installed():
    functions = [getattr(spla, name) for name in CALLS] + [_scipy.original(name) for name in CALLS]
    texts = [pickle.dumps(function) for function in functions]
    with gs.enabled():
        assert [pickle.dumps(function) for function in functions] == texts
        assert [pickle.loads(text) for text in texts] == functions
    assert [pickle.loads(text) for text in texts] == functions


def test_a_reload_keeps_the_state():
    module = sys.modules["gpusplu.install"]
    gs.install()
    try:
        importlib.reload(module)
        assert module.is_active()
        assert is_ours()
        with module.enabled():
            assert is_ours()
    finally:
        module.uninstall()
    assert not is_ours()
