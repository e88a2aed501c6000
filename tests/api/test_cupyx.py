"""install, uninstall and enabled reach cupyx's functions when somebody has imported them, here a stand-in's."""

import functools
import importlib
import importlib.util
import inspect
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import gpusplu as gs
from gpusplu.install import cupyx_names as _cupyx
from support.cupys import MODULE, NAMES, THEIRS, Cupyx
from support.processes import PYTHON, environment

# ---- when they become ours, and when no longer


def test_imported_before(cupyx):
    assert cupyx.calls() == THEIRS
    gs.install()
    assert cupyx.calls() == []
    gs.uninstall()
    assert cupyx.calls() == THEIRS


def test_imported_after(stand_in):
    gs.install()
    assert not {"cupy", "cupyx"} & set(sys.modules)
    cupyx = Cupyx()
    assert cupyx.calls() == []
    gs.uninstall()
    assert cupyx.calls() == THEIRS
    gs.install()
    assert cupyx.calls() == []


def test_imported_when_nobody_asks_any_more(stand_in):
    gs.install()
    gs.uninstall()
    cupyx = Cupyx()
    assert not any(hasattr(getattr(cupyx.linalg, name), "__wrapped__") for name in NAMES)
    assert cupyx.calls() == THEIRS
    with gs.enabled():
        assert cupyx.calls() == []


def test_imported_inside_enabled(stand_in):
    with gs.enabled():
        cupyx = Cupyx()
        assert cupyx.calls() == []
        seen = []
        thread = threading.Thread(target=lambda: seen.extend(cupyx.calls()))
        thread.start()
        thread.join()
        assert seen == ([] if getattr(sys.flags, "thread_inherit_context", False) else THEIRS)
    assert cupyx.calls() == THEIRS


def test_any_order_of_install_and_enabled(cupyx):
    with gs.enabled():
        gs.install()
        gs.install()
        gs.uninstall()
        assert cupyx.calls() == []
        gs.install()
    assert cupyx.calls() == []
    gs.uninstall()
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


def test_a_module_that_cannot_be_imported_stays_so(stand_in, monkeypatch):
    gs.install()
    monkeypatch.setitem(sys.modules, f"{MODULE}._solve", None)
    with pytest.raises(ImportError, match="_solve"):
        importlib.import_module(MODULE)
    monkeypatch.delitem(sys.modules, f"{MODULE}._solve")
    assert Cupyx().calls() == []


def test_finders_and_loaders_of_old(stand_in, monkeypatch):
    """A finder without find_spec is passed over, a loader without exec_module left as it is."""

    class Loader:
        def load_module(self, name):
            raise ImportError("never")

    class Finder:
        def find_spec(self, name, path=None, target=None):
            return importlib.util.spec_from_loader(name, Loader(), is_package=True) if name == MODULE else None

    gs.install()
    (watch,) = [finder for finder in sys.meta_path if isinstance(finder, _cupyx.Watch)]
    monkeypatch.setattr(sys, "meta_path", [watch, object(), Finder()])
    assert type(watch.find_spec(MODULE).loader) is Loader
    assert watch.find_spec(MODULE + "._solve") is None
    monkeypatch.setattr(sys, "meta_path", [Finder()])
    assert watch.find_spec(MODULE) is None


def test_nothing_is_imported_and_nothing_found_without_cupy():
    code = (
        "import sys, gpusplu; before = len(sys.meta_path); gpusplu.install(); gpusplu.uninstall(); gpusplu.install()\n"
        "with gpusplu.enabled(): pass\n"
        "assert len(sys.meta_path) == before + 1; assert not {'cupy', 'cupyx'} & set(sys.modules)\n"
        "sys.modules['cupyx'] = None\n"
        "try:\n import cupyx.scipy.sparse.linalg\nexcept ImportError: pass\nelse: raise AssertionError"
    )
    subprocess.run([*PYTHON, "-c", code], check=True, env=environment())


def test_a_module_that_is_loaded_when_used_is_not_woken(stand_in):
    importlib.import_module("cupyx.scipy.sparse")
    spec = importlib.util.find_spec(MODULE)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    gs.install()
    assert f"{MODULE}._solve" not in sys.modules
    assert callable(module.splu)
    with gs.enabled():
        assert Cupyx().calls() == []


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


def at_once(*work):
    """Each function in a thread, when all threads are there."""
    start = threading.Barrier(len(work))
    threads = [threading.Thread(target=lambda do=do: (start.wait(), do())) for do in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_import_and_switch(stand_in):
    """Whoever comes first, CuPy's functions are ours in the end."""

    def are_ours():
        return {hasattr(getattr(sys.modules[MODULE], name), "__wrapped__") for name in NAMES}

    for _ in range(20):
        for name in [name for name in sys.modules if name.partition(".")[0] in ("cupy", "cupyx")]:
            del sys.modules[name]
        at_once(*[lambda: importlib.import_module(MODULE)] * 2, *[gs.install] * 2)
        assert are_ours() == {True}
        gs.uninstall()
        assert are_ours() == {False}


# ---- references


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


def test_what_others_wrapped_around_them_stays(cupyx, monkeypatch):
    inner, counted = cupyx.linalg.splu, []

    @functools.wraps(inner)
    def wrapper(*args):
        counted.append(True)
        return inner(*args)

    monkeypatch.setattr(cupyx.linalg, "splu", wrapper)
    code = wrapper.__code__
    with gs.enabled():
        assert cupyx.calls() == []
        assert wrapper.__code__ is code
    assert counted == [True]


def test_what_is_no_function_is_left_alone(cupyx, monkeypatch):
    monkeypatch.setattr(cupyx.linalg, "splu", np.linalg.solve)
    monkeypatch.setattr(cupyx.linalg, "spsolve", 1)
    with gs.enabled():
        assert not hasattr(np.linalg.solve, "_gpusplu")
        assert cupyx.linalg.spsolve == 1
        assert hasattr(cupyx.linalg.factorized, "__wrapped__")


def test_functions_are_cupys_to_look_at(cupyx):
    functions = [getattr(cupyx.linalg, name) for name in NAMES]

    def seen():
        return [
            (inspect.signature(f), inspect.getsource(f), f.__doc__, f.__module__, pickle.dumps(f)) for f in functions
        ]

    before = seen()
    with gs.enabled():
        assert seen() == before
        with pytest.raises(TypeError, match="splu"):
            cupyx.linalg.splu()
