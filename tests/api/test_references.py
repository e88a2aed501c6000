"""References to SciPy's functions, wherever they are kept, reach what install and enabled put there."""

import functools
import inspect
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse.linalg as spla
from scipy.sparse.linalg import spsolve as spsolve_by_value

import gpusplu as gs
from gpusplu.common import scipy_names as _scipy
from support.scipy_names import CALLS, A


@pytest.fixture(autouse=True)
def installed_by_none():
    yield
    gs.uninstall()


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


def test_what_others_wrapped_around_them_stays(monkeypatch, asked):
    counted = []

    @functools.wraps(spla.spsolve)
    def wrapper(*args):
        counted.append(True)
        return spsolve_by_value(*args)

    for name in ("scipy.sparse.linalg", "scipy.sparse.linalg._dsolve.linsolve"):
        monkeypatch.setattr(sys.modules[name], "spsolve", wrapper)
    before = wrapper.__code__, spsolve_by_value.__code__
    with gs.enabled():
        spla.spsolve(A, np.ones(3))
        assert (counted, asked) == ([True], ["spsolve"])
        spsolve_by_value(A, np.ones(3))
        assert (counted, asked) == ([True], ["spsolve"] * 2)
    assert (wrapper.__code__, spsolve_by_value.__code__) == before


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


def test_what_is_left_to_scipy_reaches_scipy(asked):
    """An infinite entry is SciPy's to answer, through its own functions with their own bodies."""
    bad = A.copy()
    bad.data[0] = np.inf
    with gs.enabled():
        assert isinstance(spla.splu(bad), spla.SuperLU)
        assert not isinstance(spla.splu(A), spla.SuperLU)
    assert asked == ["splu", "splu"]


def test_a_function_in_the_place_of_scipys_is_no_circle(monkeypatch):
    """Options are shown to SciPy's function, not to one that calls ours again."""
    from scipy.sparse.linalg._dsolve import linsolve

    gs.install()
    installed = linsolve.splu
    monkeypatch.setattr(linsolve, "splu", lambda *args, **kwargs: installed(*args, **kwargs))
    gs.common.options.checked_by_scipy.cache_clear()
    assert isinstance(linsolve.splu(A, diag_pivot_thresh=0.7), gs.LUFactor)
