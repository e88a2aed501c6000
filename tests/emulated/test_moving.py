"""Factors that begin on the processor and go over to a device, emulated, once their use pays for it."""

import logging
import os
import pickle
import re
import subprocess
import threading

import numpy as np
import pytest

import gpusplu as gs
from faults.forking import child
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.cost.model import Estimate
from gpusplu.cuda import presence
from gpusplu.dispatch import background as ahead
from gpusplu.dispatch import migration as moving
from gpusplu.engines.device.engine import DeviceEngine
from gpusplu.engines.device.factor import DeviceFactor
from gpusplu.factors import solving
from support import fake_cupy, processes
from support.small_matrices import EPS, rhs

pytestmark = [
    pytest.mark.usefixtures("cupy", "device"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
A = gallery.poisson(28, 28)
B = rhs(A.shape[0])


@pytest.fixture(autouse=True)
def promised(monkeypatch):
    """A device that costs nothing to look at and promises a step at once, after a first factorization that is free."""
    promises = {"step": 0.0, "first": 0.0}

    def predicted(problem, engines):
        steps = {"refactor": promises["step"], "factor": promises["first"]}
        return tuple(Estimate(e.name, note="" if e.name == "supernodal" else "not here", **steps) for e in engines)

    monkeypatch.setattr(presence, "no_driver", lambda: "")
    monkeypatch.setattr(presence, "no_device", lambda: "")
    monkeypatch.setattr(moving, "predicted", predicted)
    monkeypatch.setattr(moving, "FIRST", 0.0)
    monkeypatch.setattr(moving, "has_idle_processor", lambda: False)
    monkeypatch.setattr(DeviceEngine, "lower_bound", lambda self, problem: 0.0)
    gs.cache_clear()
    yield promises
    gs.cache_clear()


def right(factor, values=A.data):
    system = A.copy()
    system.data = values
    return backward_error(system, np.asarray(factor.solve(B)), B) < 100 * EPS["d"]


def watched(make=gs.splu):
    factor = make(A)
    assert factor._migration is not None and factor.engine == "cpu"
    return factor


@pytest.mark.parametrize("make", [gs.splu, gs.cholesky])
def test_it_moves_at_a_refactorization(make):
    factor = watched(make)
    assert right(factor) and factor.engine == "cpu"
    factor.refactor(2 * A.data)
    assert factor.engine == "supernodal" and type(factor._core) is DeviceFactor
    assert right(factor, 2 * A.data)
    assert "began with 'cpu'; after 1 steps that took" in factor.explain() and factor.stats.seconds["move"] > 0
    again = pickle.loads(pickle.dumps(factor))
    assert again.engine == "supernodal" and right(again, 2 * A.data)


@pytest.mark.parametrize("beside", [False, True])
def test_moves_are_told(monkeypatch, capsys, caplog, beside):
    """Whoever asked for it is told, of what a thread does for him too."""
    monkeypatch.setattr(moving, "has_idle_processor", lambda: beside)
    caplog.set_level(logging.INFO, "gpusplu")
    before, factor = set(threading.enumerate()), gs.splu(A, verbose=1)
    if not beside:
        factor.solve(B)
    for thread in set(threading.enumerate()) - before:
        thread.join()
    factor.refactor(2 * A.data)
    assert factor.engine == "supernodal" and right(factor, 2 * A.data)
    assert any(message.startswith("moved to engine supernodal: began with 'cpu'") for message in caplog.messages)
    assert capsys.readouterr().out.splitlines() == [f"gpusplu: {message}" for message in caplog.messages]


def test_a_move_during_a_capture_adds_nothing_to_it(device):
    """The capture's stream is not used, neither for the call itself nor for the move that it triggers."""
    factor = watched()
    with device.capture() as graph:
        assert right(factor)
    assert not graph.commands
    factor.refactor(2 * A.data)
    assert factor.engine == "supernodal" and right(factor, 2 * A.data)


def test_it_moves_at_a_solve():
    factor = watched()
    assert right(factor) and factor.engine == "cpu"
    assert right(factor) and factor.engine == "supernodal"
    assert abs(factor.L @ factor.U - A[factor.perm_r.argsort()][:, factor.perm_c.argsort()]).max() < 1e-12


def test_solves_do_not_move_to_older_values():
    factor = watched()
    assert right(factor)
    factor._migration.version += 1  # as a refactorization does that comes between
    assert right(factor) and factor.engine == "cpu"
    factor.refactor(3 * A.data)
    assert factor.engine == "supernodal" and right(factor, 3 * A.data)


def test_a_thread_prepares_it(monkeypatch):
    """From the first factorization on."""
    monkeypatch.setattr(moving, "has_idle_processor", lambda: True)
    before = set(threading.enumerate())
    factor = watched()
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert factor.engine == "cpu"
    factor.refactor(2 * A.data)
    assert factor.engine == "supernodal" and right(factor, 2 * A.data)


@pytest.mark.parametrize("place", [np.asarray, fake_cupy.asarray], ids=["host", "device"])
def test_what_is_offered_has_its_graphs(place):
    """The caller's first step there records none."""
    factor, values, b = watched(), place(2 * A.data), place(B)
    assert backward_error(A, np.array(factor.solve(b)), B) < 100 * EPS["d"]
    core = factor._migration._pending[0]
    known = set(core.commands._graphs)
    factor.refactor(values)
    assert backward_error(2 * A, np.array(factor.solve(b)), B) < 100 * EPS["d"]
    assert factor._core is core and set(core.commands._graphs) == known


def test_it_stays_where_a_device_is_slower(promised):
    promised["step"] = 1e9
    factor = watched()
    for _ in range(3):
        factor.refactor(2 * A.data)
        assert right(factor, 2 * A.data)
    assert factor.engine == "cpu"
    assert re.search(r"s so far, \de\+\d+ s are predicted with supernodal", factor.explain())


def test_a_factor_that_stayed_is_compared_again(promised):
    """The first comparison sees a few calls, whose mix says little of those that follow."""
    promised["step"] = 1e9
    factor = watched()
    factor.refactor(2 * A.data)
    assert right(factor, 2 * A.data) and "stays on the processor" in factor.explain()
    promised["step"] = 0.0
    for _ in range(100):
        factor.refactor(2 * A.data)
        if factor.engine != "cpu":
            break
    assert factor.engine == "supernodal" and right(factor, 2 * A.data)


def test_a_price_is_paid_when_its_share_was_spent(promised):
    promised["first"] = 0.05
    factor = watched()
    use, steps = factor._migration._use, 0
    while factor.engine == "cpu":
        factor.refactor(A.data)
        factor.solve(B)
        steps += 1
    assert steps > 1 and use.spent > 0.999 * moving.SHARE_ONE_PROCESSOR * 0.05
    assert right(factor)


def test_importing_cupy_is_paid_in_full(monkeypatch):
    """Its import keeps the interpreter from the caller: no spare processor helps."""
    monkeypatch.setattr(moving, "has_idle_processor", lambda: True)
    monkeypatch.setattr(DeviceEngine, "lower_bound", lambda self, problem: 1.5)
    begun = []
    monkeypatch.setattr(ahead, "Thread", lambda target, name: begun.append(name) or threading.Thread())
    for loaded, due in ((True, 0.15), (False, 0.6)):  # its start is half a second of the 1.5
        monkeypatch.setattr(presence, "is_loaded", lambda loaded=loaded: loaded)
        gs.cache_clear()
        watch = gs.splu(A)._migration
        use = watch._use
        use.count(watch, 0.9 * due - use.spent)
        assert not begun
        use.count(watch, 0.2 * due)
        assert begun.pop() == ahead.THREAD


@pytest.mark.parametrize(
    "options",
    [
        {"deterministic": True},
        {"engine": "cpu"},
        {"expected_refactors": 3},
        {"device": "cpu"},
        {"engine": "supernodal"},
    ],
    ids=str,
)
def test_only_what_nobody_decided_moves(options):
    assert gs.splu(A, **options)._migration is None
    assert gs.splu(gallery.poisson(4, 4))._migration is None


def test_a_device_that_fails_is_told_of_once(monkeypatch, caplog):
    factor = watched()
    assert right(factor)

    def fails(self, values, source=None):
        raise MemoryError("no more")

    monkeypatch.setattr(DeviceFactor, "refactor", fails)
    with pytest.warns(RuntimeWarning, match="stays on the processor, a device failed: MemoryError: no more"):
        factor.refactor(2 * A.data)
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warned == ["stays on the processor: MemoryError: no more"]
    for _ in range(3):
        factor.refactor(3 * A.data)
        assert right(factor, 3 * A.data)
    assert factor.engine == "cpu" and "stays on the processor: MemoryError" in factor.explain()


def test_a_look_that_fails_is_told_of_once(monkeypatch):
    def fails(problem, engines):
        raise gs.EngineUnavailableError("it is gone")

    monkeypatch.setattr(moving, "predicted", fails)
    factor = watched()
    assert right(factor)
    with pytest.warns(RuntimeWarning, match="it is gone"):
        assert right(factor)
    assert right(factor) and factor.engine == "cpu"


def test_values_that_are_refused_leave_the_factor_as_it_was():
    factor = watched()
    assert right(factor)
    wrong = A.data.copy()
    wrong[7] = np.nan
    with pytest.raises(gs.NonFiniteError):
        factor.refactor(wrong)
    assert right(factor)
    gs.cache_clear()
    factor = watched()
    assert right(factor)
    factor._migration.version += 1  # other values than those that were bought
    with pytest.raises(RuntimeError, match="singular"):
        factor.refactor(np.zeros(A.nnz))
    assert right(factor) and factor.engine == "cpu"
    factor.refactor(2 * A.data)
    assert right(factor, 2 * A.data) and factor.engine == "supernodal"


def test_device_arrays_stay_there_after_the_move():
    factor, values, b = watched(), fake_cupy.asarray(2 * A.data), fake_cupy.asarray(B)
    for _ in range(2):
        factor.refactor(values)
        x = factor.solve(b)
        assert type(x) is fake_cupy.ndarray
        assert backward_error(2 * A, np.array(x), B) < 100 * EPS["d"]
    assert factor.engine == "supernodal" and factor._symbolic.choice.request.on_device


def test_threads_that_use_it_while_it_moves(monkeypatch):
    monkeypatch.setattr(moving, "has_idle_processor", lambda: True)
    for _ in range(3):
        factor = watched()
        wrong = []

        def use(scale, factor=factor, wrong=wrong):
            for _ in range(5):
                factor.refactor(scale * A.data)
                x = factor.solve(B)
                if not any(backward_error(k * A, x, B) < 100 * EPS["d"] for k in (1, 2, 3)):
                    wrong.append(scale)

        threads = [threading.Thread(target=use, args=(scale,)) for scale in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        factor.refactor(5 * A.data)
        assert not wrong and right(factor, 5 * A.data)


def test_forked_children_stay_on_the_processor():
    factor = watched()
    assert right(factor) and factor._migration._pending
    assert child(lambda: (right(factor), factor.engine)) == "(True, 'cpu')"
    assert right(factor) and factor.engine == "supernodal" and os.getpid()


def test_a_thread_that_works_apart_leaves_the_pool_to_others():
    code = """
import os, threading, time
from gpusplu import _core, gallery, splu
A = gallery.poisson(100, 100)
_core.set_num_threads(4)
before = len(os.listdir("/proc/self/task"))
def threads(least):
    "Those that factorizations start; none do while others keep the processors busy."
    end = time.monotonic() + 10
    while True:
        splu(A)
        found = len(os.listdir("/proc/self/task")) - before
        if found >= least or time.monotonic() > end:
            return found
found = []
def work():
    _core.work_apart(True)
    found.append(threads(2))
    _core.work_apart(False)
thread = threading.Thread(target=work)
thread.start()
thread.join()
print(found[0], threads(3))
"""
    run = subprocess.run([*processes.PYTHON, "-c", code], env=processes.environment(), capture_output=True, text=True)
    apart, together = map(int, run.stdout.split())
    assert apart == 2  # the thread, and the other one of its half of four
    assert together > 2  # threads of the caller beside that one


def test_use_adds_up_over_the_solves_of_a_program():
    """`spsolve` in a loop ends on the device, and refactors there."""
    engines = []
    for scale in range(1, 8):
        assert backward_error(scale * A, gs.spsolve(scale * A, B), B) < 100 * EPS["d"]
        factor = gs.splu(scale * A)
        assert right(factor, scale * A.data)
        engines.append(factor.engine)
    assert engines[0] == "cpu" and engines[-1] == "supernodal"
    assert engines == sorted(engines)  # once, and never back


def test_spsolve_refactors_on_the_device(monkeypatch):
    made, used = [], []
    make, refactor = DeviceFactor.__init__, DeviceFactor.refactor
    monkeypatch.setattr(
        DeviceFactor, "__init__", lambda self, *args, **more: (made.append(1), make(self, *args, **more))[1]
    )
    monkeypatch.setattr(DeviceFactor, "refactor", lambda self, *args: (used.append(1), refactor(self, *args))[1])
    for scale in range(1, 10):
        assert backward_error(scale * A, gs.spsolve(scale * A, B), B) < 100 * EPS["d"]
    assert len(made) <= 3 and len(used) >= 3


@pytest.mark.parametrize("installed", [False, True])
def test_spsolve_of_cupyx_ends_on_the_device(cupyx, monkeypatch, installed):
    """What is on a device counts as that from the first call, and stays there when the factor is there."""
    if installed:
        gs.install()
    solve = cupyx.linalg.spsolve if installed else gs.spsolve
    there, b, requests, sources = cupyx.matrix(A), fake_cupy.asarray(B), [], []
    solve_single_use, refactor = solving.solve_single_use, DeviceFactor.refactor
    monkeypatch.setattr(
        DeviceFactor, "refactor", lambda self, values, *a: (sources.append(type(values)), refactor(self, values, *a))[1]
    )
    monkeypatch.setattr(
        solving, "solve_single_use", lambda *a: (requests.append(a[2].on_device), solve_single_use(*a))[1]
    )
    for scale in range(1, 10):
        there.data[:] = scale * A.data
        x = solve(there, b)
        assert type(x) is fake_cupy.ndarray
        assert backward_error(scale * A, np.array(x), B) < 100 * EPS["d"]
    assert all(requests) and len(requests) == 9
    assert sources == len(sources) * [fake_cupy.ndarray] and len(sources) >= 4


def test_an_analysis_whose_factors_moved_makes_others_there():
    symbolic = gs.analyze(A)
    first = symbolic.factor(A.data)
    while first.engine == "cpu":
        first.refactor(A.data)
        assert right(first)
    second = symbolic.factor(2 * A.data)
    assert second.engine == "supernodal" and right(second, 2 * A.data)
    assert symbolic.engine == "cpu"


def test_each_factor_has_the_threshold_of_its_call_after_the_move():
    thresholds = [0.0, 0.05, 0.1, 0.05]
    for _ in range(4):
        factors = [gs.splu(A, diag_pivot_thresh=threshold) for threshold in thresholds]
        assert all(right(factor) for factor in factors)
    assert {factor.engine for factor in factors} == {"supernodal"}
    factors += [factor.symbolic.factor(A.data) for factor in factors]
    assert [factor.symbolic.parts()[0].options.pivot_threshold for factor in factors] == 2 * thresholds
    assert (gs.cache_info().hits, gs.cache_info().misses) == (15, 1)


def test_children_begin_on_the_processor_again():
    factor = watched()
    while factor.engine == "cpu":
        assert right(factor)

    def anew():
        lu = gs.splu(A)
        return right(lu), lu.engine

    assert child(anew) == "(True, 'cpu')"
    assert gs.splu(A).engine == "supernodal"
