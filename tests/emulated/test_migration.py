"""Choices of `auto`, factors that migrate from the processor to an emulated device, and forked children."""

import logging
import pickle
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from faults.forking import child
from gpusplu import gallery
from gpusplu.common.timing import backward_error, other_values
from gpusplu.cost import table
from gpusplu.cost.model import Estimate
from gpusplu.cuda import presence
from gpusplu.dispatch import migration, selection
from gpusplu.engines.device.engine import DeviceEngine
from gpusplu.engines.device.factor import DeviceFactor
from gpusplu.engines.problem import Problem, Request
from support import fake_cupy
from support.processes import run
from support.small_matrices import EPS, random_matrix, rhs

pytestmark = [
    pytest.mark.usefixtures("cupy", "device"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
A = gallery.poisson(28, 28)
B = rhs(A.shape[0])
ENGINES = pytest.mark.parametrize("engine", ["supernodal", "glu", "sflu", "crisscross"])


@pytest.fixture(autouse=True)
def host(monkeypatch):
    """One with a device."""
    monkeypatch.setattr(presence, "no_driver", lambda: "")
    monkeypatch.setattr(presence, "no_device", lambda: "")


@pytest.fixture
def analysed(monkeypatch):
    """Keys of the core's analyses that were made, and the threads that made them."""
    made, analyze = [], Problem._analyzed

    def logged(self, key, *arguments, **options):
        if self.memo.get(key) is None:
            made.append((key, threading.current_thread().name))
        return analyze(self, key, *arguments, **options)

    monkeypatch.setattr(Problem, "_analyzed", logged)
    return made


def right(factor, values=A.data, matrix=A):
    system = matrix.copy()
    system.data = values
    b = rhs(matrix.shape[0])
    return backward_error(system, np.asarray(factor.solve(b)), b) < 100 * EPS["d"]


# ---- auto


def expect_a_start_of(monkeypatch, seconds):
    """Have the model predict this long for the start of a device."""
    monkeypatch.setitem(table._table, "start.factor", table.Entry({"call": seconds}, "here"))


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_auto_follows_the_model(monkeypatch, seconds):
    matrix = gallery.poisson(20, 20)
    assert "1,920 entries are too few" in gs.splu(matrix).explain()
    monkeypatch.setattr(selection, "SMALLEST", 0)
    expect_a_start_of(monkeypatch, -seconds)
    factor = gs.cholesky(matrix)
    assert factor.engine == ("supernodal" if seconds else "cpu") and "predicted" in factor.explain()
    assert right(factor, matrix.data, matrix)
    factor = gs.cholesky(matrix, device_memory=10_000)
    assert factor.engine == "cpu"
    assert not seconds or "bytes of device memory are needed, 10,000 may be used" in factor.explain()


def test_auto_keeps_triangular_matrices_on_the_processor(monkeypatch):
    """Also where rows and columns are permuted."""
    monkeypatch.setattr(selection, "SMALLEST", 0)
    expect_a_start_of(monkeypatch, -1e9)
    order = np.random.default_rng(0).permutation(400)
    matrix = sp.csc_array(sp.tril(gallery.poisson(20, 20)))[order][:, order[::-1]]
    assert "A is triangular" in gs.splu(matrix).explain()
    assert gs.splu(matrix + sp.eye_array(400, k=1)).engine == "supernodal"


@pytest.mark.parametrize("ordering", ["nd", "amd"])
def test_fronts_by_dissection_are_not_analysed_twice(monkeypatch, analysed, ordering):
    monkeypatch.setattr(selection, "SMALLEST", 0)
    expect_a_start_of(monkeypatch, -1e9)
    matrix = gallery.poisson(12, 12)
    factor = gs.cholesky(matrix, ordering=ordering)
    assert factor.engine == "supernodal" and right(factor, matrix.data, matrix)
    assert [key for key, _ in analysed].count("for_fronts") == (ordering == "amd")


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_a_likely_device_is_predicted_first(monkeypatch, analysed, seconds):
    """One analysis where the device wins; the CPU engine's only where it does not."""
    monkeypatch.setattr(selection, "LIKELY", 1000)
    expect_a_start_of(monkeypatch, seconds - 5e8)
    matrix = gallery.poisson(20, 20)
    factor = gs.splu(matrix, expected_refactors=1000)
    assert factor.engine == ("cpu" if seconds else "supernodal") and right(factor, matrix.data, matrix)
    assert [key for key, _ in analysed].count("for_processor") == (factor.engine == "cpu")
    assert "predicted, with 1,000 refactorizations" in factor.explain()


def test_a_named_device_leaves_the_choice_among_its_engines(monkeypatch):
    matrix = gallery.rlc_mesh(6, 6)
    assert gs.splu(matrix, device=0).engine != "cpu"
    with pytest.raises(gs.DeviceMemoryError, match="10,000"):
        gs.splu(matrix, device=0, device_memory=10_000)
    for term in ("sflu.refactor", "sflu.solve"):
        monkeypatch.setitem(table._table, term, table.Entry(dict.fromkeys(table.shipped()[term], 0.0), "here"))
    factor = gs.splu(matrix, device=0, expected_refactors=10**9)
    assert factor.engine == "sflu" and "sflu: device=0 was requested; predicted" in factor.explain()
    assert right(factor, matrix.data, matrix)


@ENGINES
def test_an_analysis_is_found_again(engine):
    matrix = gallery.named("circuit:6x6")
    other = other_values(matrix, False)
    first, x = gs.splu(matrix, engine=engine), None
    x = first.solve(rhs(matrix.shape[0]))
    second = gs.splu(other, engine=engine)
    assert second.stats["analysis"] == "analysis of call 1 reused" and second.engine == engine
    assert right(second, other.data, other)
    np.testing.assert_array_equal(first.solve(rhs(matrix.shape[0])), x)
    held = gs.cache_info().bytes
    assert gs.splu(matrix).stats["analysis"] == "made for this matrix"  # for another engine
    gs.cache_clear()
    gs.splu(matrix)
    assert gs.cache_info().bytes < held  # programs are counted


# ---- migration


@pytest.fixture
def promised(monkeypatch):
    """A device that costs nothing to evaluate and promises steps of no time, after a free first factorization."""
    promises = {"step": 0.0, "first": 0.0}

    def predicted(problem, engines):
        steps = {"refactor": promises["step"], "factor": promises["first"]}
        return tuple(Estimate(e.name, note="" if e.name == "supernodal" else "not here", **steps) for e in engines)

    monkeypatch.setattr(migration, "predicted", predicted)
    monkeypatch.setattr(migration, "FIRST", 0.0)
    monkeypatch.setattr(migration, "has_idle_processor", lambda: False)
    monkeypatch.setattr(DeviceEngine, "lower_bound", lambda self, problem: 0.0)
    return promises


def tracked(make=gs.splu):
    factor = make(A)
    assert factor.engine == "cpu" and right(factor) and factor.engine == "cpu"
    return factor


def join_background():
    for thread in threading.enumerate():
        if thread.name == migration.THREAD:
            thread.join()


@pytest.mark.parametrize("make", [gs.splu, gs.cholesky])
@pytest.mark.parametrize("by", ["refactor", "solve", "device arrays", "capture", "thread"])
def test_a_factor_migrates(promised, device, monkeypatch, make, by):
    monkeypatch.setattr(migration, "has_idle_processor", lambda: by == "thread")
    if by == "capture":  # nothing is added to it, by the call or by the migration that it triggers
        factor = make(A)
        with device.capture() as graph:
            assert right(factor)
        assert not graph.commands
    else:
        factor = tracked(make)
    join_background()
    scale, put = 1 if by == "solve" else 2, fake_cupy.asarray if by == "device arrays" else np.asarray
    if by != "solve":
        factor.refactor(put(2 * A.data))
    x = factor.solve(put(B))
    assert factor.engine == "supernodal" and type(x) is type(put(B)) and right(factor, scale * A.data)
    assert "began with 'cpu'; " in factor.explain() and factor.stats.seconds["move"] > 0
    again = pickle.loads(pickle.dumps(factor))
    assert again.engine == "supernodal" and right(again, scale * A.data)
    factor.refactor(3 * A.data, check="later")
    assert right(factor, 3 * A.data)


@pytest.mark.parametrize("in_thread", [False, True])
def test_migrations_are_logged(promised, monkeypatch, capsys, caplog, in_thread):
    """Of a background thread by the call that started it."""
    monkeypatch.setattr(migration, "has_idle_processor", lambda: in_thread)
    caplog.set_level(logging.INFO, "gpusplu")
    factor = gs.splu(A, verbose=1)
    if not in_thread:
        factor.solve(B)
    join_background()
    factor.refactor(2 * A.data)
    assert factor.engine == "supernodal" and right(factor, 2 * A.data)
    assert any(message.startswith("migrated to engine supernodal: began with 'cpu'") for message in caplog.messages)
    assert capsys.readouterr().out.splitlines() == [f"gpusplu: {message}" for message in caplog.messages]


def test_a_factor_stays_where_a_device_is_slower_and_is_compared_again(promised):
    """The first comparison sees a few calls, whose mix says little of those that follow."""
    promised["step"] = 1e9
    factor = gs.splu(A)
    for _ in range(3):
        factor.refactor(2 * A.data)
        assert right(factor, 2 * A.data) and factor.engine == "cpu"
    assert re.search(r"s so far, \de\+\d+ s predicted with supernodal", factor.explain())
    promised["step"] = 0.0
    for _ in range(100):
        factor.refactor(2 * A.data)
        if factor.engine != "cpu":
            break
    assert factor.engine == "supernodal" and right(factor, 2 * A.data)


def test_a_triangular_factor_stays(promised):
    matrix = sp.csc_array(sp.tril(gallery.poisson(40, 40)))
    factor = gs.splu(matrix)
    for scale in range(2, 5):
        factor.refactor(scale * matrix.data)
        assert right(factor, scale * matrix.data, matrix) and factor.engine == "cpu"
    assert "A is triangular" in factor.explain()


def test_a_price_is_paid_when_its_share_was_spent(promised):
    promised["first"], steps = 0.05, 0
    factor = tracked()
    while factor.engine == "cpu":
        factor.refactor(A.data)
        factor.solve(B)
        steps += 1
    assert steps > 1 and right(factor)


def test_only_what_the_caller_left_open_migrates(promised):
    for options in ({"deterministic": True}, {"engine": "cpu"}, {"expected_refactors": 3}, {"device": "cpu"}):
        factor = gs.splu(A, **options)
        for scale in (2, 3):
            factor.refactor(scale * A.data)
            assert right(factor, scale * A.data) and factor.engine == "cpu", options
    small = gallery.poisson(4, 4)
    factor = gs.splu(small)
    for _ in range(3):
        factor.refactor(small.data)
    assert factor.engine == "cpu"


@pytest.mark.parametrize("where", ["prediction", "refactorization"])
def test_a_device_that_fails_is_reported_once(promised, monkeypatch, caplog, where):
    def fails(*arguments, **options):
        raise MemoryError("no more")

    if where == "prediction":
        monkeypatch.setattr(migration, "predicted", fails)
    factor = tracked()
    monkeypatch.setattr(DeviceFactor, "refactor", fails)
    with pytest.warns(RuntimeWarning, match="stays on the processor because a device failed: MemoryError: no more"):
        factor.refactor(2 * A.data)
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warned == ["stays on the processor: MemoryError: no more"]
    for _ in range(3):
        factor.refactor(3 * A.data)
        assert right(factor, 3 * A.data)
    assert factor.engine == "cpu" and "stays on the processor: MemoryError" in factor.explain()


def test_values_that_are_refused_leave_the_factor_as_it_was(promised):
    factor, wrong = tracked(), A.data.copy()
    wrong[7] = np.nan
    for values, error in ((wrong, ValueError), (0 * A.data, RuntimeError)):
        with pytest.raises(error):
            factor.refactor(values)
        assert right(factor)
    factor.refactor(2 * A.data)
    assert right(factor, 2 * A.data) and factor.engine == "supernodal"


def test_threads_that_use_a_factor_while_it_migrates(promised, monkeypatch):
    monkeypatch.setattr(migration, "has_idle_processor", lambda: True)
    factor = gs.splu(A)

    def use(scale):
        for _ in range(5):
            factor.refactor(scale * A.data)
            x = factor.solve(B)
            assert any(backward_error(k * A, x, B) < 100 * EPS["d"] for k in (1, 2, 3))

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(use, (1, 2, 3)))
    factor.refactor(5 * A.data)
    assert right(factor, 5 * A.data)


def test_use_adds_up_over_the_solves_of_a_program(promised):
    """`spsolve` in a loop ends on the device, and refactors there; so do later factors of an analysis."""
    engines = []
    for scale in range(1, 8):
        assert backward_error(scale * A, gs.spsolve(scale * A, B), B) < 100 * EPS["d"]
        factor = gs.splu(scale * A)
        assert right(factor, scale * A.data)
        engines.append(factor.engine)
    assert engines[0] == "cpu" and engines[-1] == "supernodal"
    assert engines == sorted(engines)  # once, and never back
    assert child(lambda: gs.splu(A).engine) == "cpu" and gs.splu(A).engine == "supernodal"


@pytest.mark.parametrize("installed", [False, True])
def test_spsolve_of_cupyx_ends_on_the_device(promised, cupyx, device, installed):
    if installed:
        gs.install()
    solve = cupyx.linalg.spsolve if installed else gs.spsolve
    matrix, b = cupyx.matrix(A), fake_cupy.asarray(B)
    for scale in range(1, 10):
        matrix.data[:] = scale * A.data
        device.counts.clear()
        x = solve(matrix, b)
        assert type(x) is fake_cupy.ndarray and backward_error(scale * A, np.array(x), B) < 100 * EPS["d"]
    assert device.counts["replay"] == 2  # a refactorization and a solve there


def test_an_analysis_whose_factors_migrated_makes_others_there(promised):
    thresholds = [0.0, 0.05, 0.1]
    for _ in range(4):
        factors = [gs.splu(A, diag_pivot_thresh=threshold) for threshold in thresholds]
        assert all(right(factor) for factor in factors)
    assert {factor.engine for factor in factors} == {"supernodal"}
    assert (gs.cache_info().hits, gs.cache_info().misses) == (11, 1)
    symbolic = gs.analyze(A)
    first = symbolic.factor(A.data)
    while first.engine == "cpu":
        first.refactor(A.data)
        assert right(first)
    second = symbolic.factor(2 * A.data)
    assert second.engine == "supernodal" and right(second, 2 * A.data) and symbolic.engine == "cpu"


def test_forked_children_stay_on_the_processor(promised):
    factor = tracked()
    assert child(lambda: (right(factor), right(factor), factor.engine)) == "(True, True, 'cpu')"
    assert right(factor) and factor.engine == "supernodal"


def test_a_background_thread_leaves_the_pool_to_others():
    code = """
import os, threading, time
from gpusplu import _core, gallery, splu
A = gallery.poisson(100, 100)
_core.set_num_threads(4)
before = len(os.listdir("/proc/self/task"))
def threads(least):
    "Those that factorizations start; none do while others keep the processors busy."
    end = time.monotonic() + 50
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
    apart, together = map(int, run(code).split())
    assert apart == 2  # the thread, and the other one of its half of four
    assert together > 2  # threads of the caller beside that one


# ---- analyses in the background, before a factor is used


@pytest.fixture
def large_host(monkeypatch):
    """One of processors enough, where no matrix is too small."""
    monkeypatch.setattr(presence, "is_loaded", lambda: True)
    monkeypatch.setattr(migration, "processors", lambda: 4)
    monkeypatch.setattr(selection, "SMALLEST", 0)


@pytest.mark.parametrize("make", [gs.splu, gs.cholesky])
def test_the_choice_uses_what_was_analysed_in_the_background(large_host, analysed, make):
    factor = make(A)
    join_background()
    assert [thread for key, thread in analysed if key == "for_fronts"] == [migration.THREAD]
    factor.symbolic.parts()[0].for_fronts()
    assert [key for key, _ in analysed].count("for_fronts") == 1 and right(factor)


def test_the_background_reads_values_of_its_own(large_host, monkeypatch):
    """The caller may overwrite A.data once he has the factor."""
    written, read, predicted = threading.Event(), [], migration.predicted

    def late(problem, engines):
        assert written.wait(10)
        read.append(problem.values.copy())
        return predicted(problem, engines)

    monkeypatch.setattr(migration, "predicted", late)
    matrix = A.copy()
    gs.splu(matrix)
    matrix.data[:] = np.nan
    written.set()
    join_background()
    np.testing.assert_array_equal(read[0], A.data)


def test_errors_in_the_background_are_ignored(large_host, monkeypatch):
    monkeypatch.setattr(migration, "predicted", lambda *arguments: 1 / 0)
    factor = gs.splu(A)
    join_background()
    assert right(factor)


def test_background_analyses_are_for_factors_that_may_migrate(large_host, monkeypatch):
    begun = []
    monkeypatch.setattr(migration, "analyze_for_devices", lambda own, memo: begun.append(own))
    for options in ({"deterministic": True}, {"engine": "cpu"}, {"expected_refactors": 3}, {"precision": "mixed"}):
        gs.splu(A, **options)
    gs.explain(A)
    for owner, name, value in ((presence, "is_loaded", False), (migration, "processors", 3)):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, lambda value=value: value)
            gs.splu(2 * A)
    join_background()
    assert not begun
    gs.cache_clear()
    gs.splu(2 * A)
    join_background()
    assert len(begun) == 1


def test_finite_elements_in_space_are_not_analysed_for_the_processor_first():
    def likely(n, a_row):
        return selection.is_likely(SimpleNamespace(n=n, nnz=n * a_row, request=Request(may_migrate=True)))

    assert likely(20_000, 60) and not likely(20_000, 20) and not likely(2_000, 60)
    assert likely(2_000_000, 6)  # whatever it is


# ---- forked children


@ENGINES
def test_children_of_a_process_that_uses_cuda_are_refused(engine):
    matrix, b = random_matrix(), np.ones(60)
    factor = gs.splu(matrix, engine=engine)
    for use in (
        lambda: factor.solve(b),
        lambda: factor.refactor(matrix.data),
        lambda: factor.stats,
        lambda: factor.L,
        lambda: gs.splu(matrix, engine=engine),
    ):
        assert child(use).startswith("EngineUnavailableError: this process was forked from one that uses CUDA")
    assert np.allclose(matrix @ factor.solve(b), b)


def test_auto_takes_the_processor_in_a_child(monkeypatch):
    gs.splu(A, engine="supernodal")
    monkeypatch.setattr(selection, "automatic", Request)
    monkeypatch.setattr(selection, "SMALLEST", 0)
    monkeypatch.setattr(selection, "LIKELY", 0)

    def use():
        factor = gs.splu(2 * A)
        return factor.engine, "does not survive a fork" in factor.explain(), right(factor, 2 * A.data)

    assert child(use) == str(("cpu", True, True))
