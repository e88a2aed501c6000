"""install, uninstall, enabled: what is switched, for whom, and that all of it is undone."""

import asyncio
import contextlib
import contextvars
import functools
import importlib
import importlib.util
import inspect
import pickle
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse.linalg as spla
from scipy.sparse.linalg import spsolve as spsolve_by_value

import gpusplu as gs
from gpusplu.common import scipy_names as _scipy
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
    assert isinstance(spla.spilu(A), spla.SuperLU) and not hasattr(spla.spilu, "__wrapped__")  # not ours
    gs.uninstall()
    for (_, f), function in originals.items():
        function(*CALLS[f])
    assert asked == []


def in_thread(call, *arguments):
    """What `call` returns in another thread."""
    with ThreadPoolExecutor(1) as other:
        return other.submit(call, *arguments).result()


def test_threads():
    """enabled() is for one thread, and is undone after errors; install() is for all threads, until uninstall()."""
    with gs.enabled():
        with pytest.raises(KeyError), gs.enabled():
            raise KeyError
        assert is_ours() and in_thread(is_ours) == bool(getattr(sys.flags, "thread_inherit_context", False))
        copied = contextvars.copy_context()
    assert not is_ours() and not copied.run(is_ours)  # SciPy's bodies are back once nobody holds them
    gs.install()
    gs.install()
    assert is_ours() and in_thread(is_ours)
    for _ in range(2):
        gs.uninstall()
        assert not is_ours()


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


def scipy_is_untouched():
    return not any(hasattr(getattr(spla, name), "__wrapped__") for name in CALLS)


def switched():
    """A generator that is ours from its first step to its end."""
    with gs.enabled():
        while True:
            yield is_ours()


@pytest.mark.parametrize("close", ["another thread", "another context", "collected", "thrown into"])
def test_a_generator_may_be_closed_anywhere(close):
    generator = switched()
    assert contextvars.copy_context().run(next, generator)
    if close == "another thread":
        in_thread(generator.close)
    elif close == "another context":
        contextvars.copy_context().run(generator.close)
    elif close == "thrown into":
        with pytest.raises(KeyError):
            generator.throw(KeyError)
    del generator
    assert scipy_is_untouched() and not is_ours()


def test_what_ends_elsewhere_ends_where_it_began_and_nothing_else():
    outer, inner = switched(), switched()
    assert next(outer) and next(inner)
    in_thread(outer.close)
    assert is_ours() and next(inner)
    with gs.enabled():
        in_thread(inner.close)
        assert is_ours()
    assert scipy_is_untouched() and not is_ours()
    assert next(switched())
    context = gs.enabled()
    context.__enter__()
    assert is_ours()
    del context  # without an end
    assert scipy_is_untouched() and not is_ours()


def test_enabled_decorates_functions_and_can_be_used_again_but_not_at_once():
    assert gs.enabled()(is_ours)() and not is_ours()
    context = gs.enabled()
    for _ in range(2):
        with context:
            with pytest.raises(RuntimeError, match="in use"), context:
                pass
            assert is_ours()
        assert scipy_is_untouched()


class Interrupt(BaseException):
    pass


def interrupt(*_):
    raise Interrupt


def interrupted(call, last):
    """Call it, with a signal whose handler raises, at this one of the moments in which the interpreter looks for them:
    where functions begin, and after calls. How many moments there were until then."""
    moments = 0

    def count(frame, event, argument):
        nonlocal moments
        if event in ("call", "c_return"):
            moments += 1
            if moments == last:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGUSR1)

    profiled, handled = sys.getprofile(), signal.signal(signal.SIGUSR1, interrupt)
    try:
        sys.setprofile(count)
        call()
    except Interrupt:
        pass
    finally:
        sys.setprofile(profiled)
        signal.signal(signal.SIGUSR1, handled)
    return moments


def test_a_signal_in_enabled_leaves_nothing_behind(monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # pytest's keeps what is raised where generators end

    def use():
        with gs.enabled():
            spla.spsolve(A, np.ones(3))
            next(switched())
        with contextlib.ExitStack() as stack:
            stack.enter_context(gs.enabled())

    use()
    for last in range(1, interrupted(use, 0)):
        interrupted(use, last)
        assert scipy_is_untouched() and not is_ours(), last


def test_a_signal_in_install_leaves_all_or_nothing():
    def use():
        gs.install()
        gs.uninstall()

    for last in range(1, interrupted(use, 0)):
        interrupted(use, last)
        assert is_ours() != scipy_is_untouched()
        gs.uninstall()
        assert scipy_is_untouched() and not is_ours()


def test_triangles_are_of_the_kind_that_scipys_are():
    kind = type(spla.splu(A).L)
    with gs.enabled():
        lu, other = spla.splu(A), spla.splu(2 * A)
    assert type(lu.L) is type(lu.U) is kind and lu.L is lu.L and lu.U is lu.U
    lu.refactor(3 * A.data)
    for factor, scale in ((lu, 3), (other, 2)):
        product = (factor.L @ factor.U).toarray()[factor.perm_r][:, factor.perm_c]
        np.testing.assert_allclose(product, scale * A.toarray())


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


class Solvers:
    """References of all kinds, made while SciPy's functions were its own."""

    attribute = staticmethod(spla.spsolve)

    def only_by_keyword(self, matrix, b, *, solver=spla.spsolve):
        return solver(matrix, b)


class Slots:
    __slots__ = ("solver",)


slots = Slots()
slots.solver = spla.spsolve
REFERENCES = {
    "by value": lambda *args: spsolve_by_value(*args),
    "default argument": lambda matrix, b, solver=spla.spsolve: solver(matrix, b),
    "default argument by keyword": Solvers().only_by_keyword,
    "class attribute": Solvers.attribute,
    "of an instance": Solvers().attribute,
    "in slots": lambda *args: slots.solver(*args),
    "closure": (lambda solver: lambda *args: solver(*args))(spla.spsolve),
    "partial": functools.partial(spla.spsolve, use_umfpack=False),
    "decorated": functools.wraps(spla.spsolve)(lambda *args: spsolve_by_value(*args)),
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

    with ThreadPoolExecutor(3) as threads:
        for _ in range(3):
            threads.submit(work)
        try:
            for _ in range(100):
                with gs.enabled():
                    gs.install()
                    time.sleep(0.0005)
                gs.uninstall()
                time.sleep(0.0005)
        finally:
            stop.set()
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
