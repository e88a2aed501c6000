"""install, uninstall, enabled: what is rebound, for whom, and that all of it is undone."""

import asyncio
import contextlib
import contextvars
import functools
import importlib
import importlib.util
import inspect
import pickle
import subprocess
import sys
import threading
import time
import warnings
from types import ModuleType

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from scipy.sparse.linalg import spsolve as spsolve_by_value

import gpusplu as gs
from gpusplu import _scipy, compat

SITES = {
    "scipy.sparse.linalg": ("splu", "spsolve", "factorized"),
    "scipy.sparse.linalg._dsolve": ("splu", "spsolve", "factorized"),
    "scipy.sparse.linalg._dsolve.linsolve": ("splu", "spsolve", "factorized"),
    "scipy.sparse.linalg._eigen.arpack.arpack": ("splu",),
    "scipy.sparse.linalg._matfuncs": ("spsolve",),
    "scipy.integrate._bvp": ("splu",),
    "scipy.integrate._ivp.bdf": ("splu",),
    "scipy.integrate._ivp.radau": ("splu",),
}
A = sp.csc_array(np.array([[4.0, 1, 0], [1, 5, 2], [0, 2, 6]]))


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


CALLS = {"splu": (A,), "spsolve": (A, np.ones(3)), "factorized": (A,)}


@pytest.fixture
def asked(monkeypatch):
    """Names of SciPy's functions that were answered by ours."""
    names = []
    for name in CALLS:
        ours = getattr(compat, name)
        monkeypatch.setattr(compat, name, lambda *a, name=name, ours=ours, **k: (names.append(name), ours(*a, **k))[1])
    return names


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


class Solvers:
    """References of all kinds, made while SciPy's functions were its own."""

    attribute = staticmethod(spla.spsolve)

    def method(self, matrix, b, solver=spla.spsolve):
        return solver(matrix, b)

    def only_by_keyword(self, matrix, b, *, solver=spla.spsolve):
        return solver(matrix, b)


def closure(solver):
    return lambda matrix, b: solver(matrix, b)


@functools.wraps(spla.spsolve)
def decorated(*args, **kwargs):
    return spsolve_by_value(*args, **kwargs)


class Slots:
    __slots__ = ("solver",)


slots = Slots()
slots.solver = spla.spsolve
REFERENCES = {
    "by value": lambda *args: spsolve_by_value(*args),
    "default argument": Solvers().method,
    "default argument by keyword": Solvers().only_by_keyword,
    "class attribute": Solvers.attribute,
    "of an instance": Solvers().attribute,
    "in slots": lambda *args: slots.solver(*args),
    "closure": closure(spla.spsolve),
    "partial": functools.partial(spla.spsolve, use_umfpack=False),
    "decorated": decorated,
    "in a dictionary": lambda *args, solvers={"sparse": spla.spsolve}: solvers["sparse"](*args),
    "in a tuple": lambda *args, solvers=(spla.spsolve,): solvers[0](*args),
    "by keywords": lambda matrix, b: spsolve_by_value(A=matrix, b=b),
}


@pytest.mark.parametrize("kind", REFERENCES)
def test_references_from_before_are_reached(kind, asked):
    call = REFERENCES[kind]
    for switch in (gs.install, gs.uninstall, gs.install, gs.uninstall):
        switch()
        np.testing.assert_allclose(A @ call(A, np.ones(3)), np.ones(3))
    assert asked == ["spsolve"] * 2
    with gs.enabled():
        call(A, np.ones(3))
    call(A, np.ones(3))
    assert asked == ["spsolve"] * 3


def test_functions_are_scipys_to_look_at():
    looks = ("__name__", "__qualname__", "__module__", "__doc__", "__defaults__", "__globals__")
    functions = [getattr(spla, name) for name in CALLS]

    def seen():
        names = [(f.__code__.co_name, f.__code__.co_qualname) for f in functions]  # in tracebacks
        sources = [(inspect.signature(f), inspect.getsource(f)) for f in functions]
        return names, sources, [[getattr(f, look) for look in looks] for f in functions]

    before = seen()
    details = [(f.__code__, f.__kwdefaults__, dict(f.__dict__)) for f in functions]
    with gs.enabled():
        assert seen() == before
        with pytest.raises(TypeError, match="splu"):
            spla.splu()
        with pytest.raises(TypeError, match="nonsense"):
            spla.spsolve(A, np.ones(3), nonsense=1)
    assert [(f.__code__, f.__kwdefaults__, dict(f.__dict__)) for f in functions] == details


def test_a_function_with_cells_and_arguments_by_keyword():
    """As a decorator in a SciPy to come would make them."""
    factor = 2

    def function(x, *, y=1):
        """Doc."""
        return factor * x + y

    function.attribute = 1
    original, module = _scipy.copied(function), sys.modules["gpusplu.install"]
    for _ in range(2):
        module._replace(function, original, lambda original, x, *, y=10: -original(x, y=y))
        with gs.enabled():
            assert (function(3), function(3, y=2), original(3)) == (-16, -8, 7)
        assert (function(3), function(3, y=2), original(3)) == (7, 8, 7)
        assert str(inspect.signature(function)) == "(x, *, y=1)"
        module._restore(function, original)
        assert (function(3), function(3, y=2), original(3)) == (7, 8, 7)
        assert function.__dict__ == {"attribute": 1}
        assert function.__kwdefaults__ == {"y": 1}


def test_threads_call_while_others_switch():
    stop, errors, calls = threading.Event(), [], []

    def work():
        while not stop.is_set():
            try:
                np.testing.assert_allclose(A @ spsolve_by_value(A, np.ones(3)), np.ones(3))
                spsolve_by_value(A=A, b=np.ones(3), use_umfpack=False)
                calls.append(isinstance(spla.splu(A, permc_spec="NATURAL"), gs.LUFactor))
            except BaseException as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(300):
            with gs.enabled():
                gs.install()
                time.sleep(0.0005)
            gs.uninstall()
            time.sleep(0.0005)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []
    assert set(calls) == {True, False}


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


def test_what_is_left_to_scipy_reaches_scipy(asked):
    """An infinite entry is SciPy's to answer, through its own functions with their own bodies."""
    bad = A.copy()
    bad.data[0] = np.inf
    with gs.enabled():
        assert isinstance(spla.splu(bad), spla.SuperLU)
        assert not isinstance(spla.splu(A), spla.SuperLU)
    assert asked == ["splu", "splu"]


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


def test_use_solver_stays_a_matter_of_the_thread():
    gs.install()
    spla.use_solver(useUmfpack=True)
    try:
        with pytest.raises(RuntimeError, match="umfpack not installed"):
            spla.spsolve(A, np.ones(3))
        results = []
        thread = threading.Thread(target=lambda: results.append(spla.spsolve(A, np.ones(3))))
        thread.start()
        thread.join()
        np.testing.assert_allclose(A @ results[0], np.ones(3))
    finally:
        spla.use_solver(useUmfpack=False)


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
