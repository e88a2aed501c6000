"""Analyses for a device that begin beside the processor's own, before anybody has used the factor."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.cuda import presence
from gpusplu.dispatch import background as ahead
from gpusplu.dispatch import request
from gpusplu.dispatch import selection as select
from gpusplu.engines.problem import Problem, Request
from support.small_matrices import EPS, rhs

pytestmark = pytest.mark.usefixtures("cupy", "device")
A = gallery.poisson(28, 28)
B = rhs(A.shape[0])


@pytest.fixture(autouse=True)
def host(monkeypatch):
    """Of a device and processors enough, where no matrix is too small."""
    monkeypatch.setattr(presence, "no_driver", lambda: "")
    monkeypatch.setattr(presence, "no_device", lambda: "")
    monkeypatch.setattr(presence, "is_loaded", lambda: True)
    monkeypatch.setattr(ahead, "processors", lambda: 4)
    monkeypatch.setattr(request, "SMALLEST", 0)
    gs.cache_clear()
    yield
    gs.cache_clear()


@pytest.fixture
def analysed(monkeypatch):
    """Names of the threads that analyse for fronts."""
    names, analyse = [], Problem._analyzed

    def counted(self, key, *args, **more):
        if key == "for_fronts" and self.memo.get(key) is None:
            names.append(threading.current_thread().name)
        return analyse(self, key, *args, **more)

    monkeypatch.setattr(Problem, "_analyzed", counted)
    return names


def settled(factor):
    """The factor, when nothing is under way."""
    for thread in threading.enumerate():
        if thread.name == ahead.THREAD:
            thread.join()
    return factor


@pytest.mark.parametrize("make", [gs.splu, gs.cholesky])
def test_what_was_made_ahead_is_what_the_choice_goes_by(analysed, make):
    factor = settled(make(A))
    memo = factor.symbolic.parts()[0].memo
    known = memo.get("for_fronts"), memo.get("supernodal")
    assert None not in known and analysed == [ahead.THREAD]
    assert factor.symbolic.parts()[0].for_fronts() is known[0] and analysed == [ahead.THREAD]
    assert backward_error(A, factor.solve(B), B) < 100 * EPS["d"]


def test_whoever_looks_at_devices_waits_for_it(monkeypatch, analysed):
    begun, go_on, predicted = threading.Event(), threading.Event(), ahead.predicted

    def late(*args):
        begun.set()
        assert go_on.wait(10)
        return predicted(*args)

    monkeypatch.setattr(ahead, "predicted", late)
    monkeypatch.setattr(select.registry.named("supernodal").__class__, "lower_bound", lambda self, problem: 0.0)
    threading.Timer(0.2, go_on.set).start()
    factor = settled(gs.cholesky(A))
    assert begun.is_set() and analysed == [ahead.THREAD]
    assert backward_error(A, np.asarray(factor.solve(B)), B) < 100 * EPS["d"]


def test_it_reads_values_of_its_own(monkeypatch):
    """What the caller writes into A.data once he has the factor is none of what was asked for."""
    written, read, predicted = threading.Event(), [], ahead.predicted

    def late(problem, engines):
        assert written.wait(10)
        read.append(problem.values.copy())
        return predicted(problem, engines)

    monkeypatch.setattr(ahead, "predicted", late)
    matrix = A.copy()
    factor = gs.splu(matrix)
    matrix.data[:] = np.nan
    written.set()
    np.testing.assert_array_equal(read[0] if settled(factor) and read else None, A.data)


def test_what_fails_ahead_fails_nobody(monkeypatch):
    def fails(*args):
        raise gs.EngineUnavailableError("it is gone")

    monkeypatch.setattr(ahead, "predicted", fails)
    factor = settled(gs.splu(A))
    assert backward_error(A, np.asarray(factor.solve(B)), B) < 100 * EPS["d"]


@pytest.mark.parametrize(
    "options", [{"deterministic": True}, {"engine": "cpu"}, {"expected_refactors": 3}, {"precision": "mixed"}], ids=str
)
def test_it_is_for_factors_that_may_move(monkeypatch, options):
    begun = []
    monkeypatch.setattr(ahead, "BackgroundAnalysis", begun.append)
    gs.splu(A, **options)
    gs.explain(A)
    assert not begun
    gs.splu(2 * A)
    assert len(begun) == 1


@pytest.mark.parametrize("what", ["is_loaded", "processors"])
def test_it_is_for_hosts_that_have_what_it_takes(monkeypatch, what):
    begun = []
    monkeypatch.setattr(ahead, "BackgroundAnalysis", begun.append)
    if what == "is_loaded":
        monkeypatch.setattr(presence, "is_loaded", lambda: False)
    else:
        monkeypatch.setattr(ahead, "processors", lambda: 3)
    gs.splu(A)
    assert not begun


def test_finite_elements_in_space_are_not_analysed_for_the_processor_first():
    def likely(n, a_row):
        return select.is_likely(SimpleNamespace(n=n, nnz=n * a_row, request=Request(may_migrate=True)))

    assert likely(20_000, 60) and not likely(20_000, 20) and not likely(2_000, 60)
    assert likely(2_000_000, 6)  # whatever it is
