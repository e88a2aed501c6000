"""Bars and functions that are told how far a call has come."""

import io
import logging
import sys
import threading
import types

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common import bars, progress
from gpusplu.common.listeners import Caller, log_context
from gpusplu.common.timing import backward_error

LONG = gallery.poisson(34, 34, 34)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """Seconds that pass when they are told to."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "perf_counter", clock)
    yield clock
    progress.tick("", 0.0, 0.0)


def on_terminal(monkeypatch, capsys):
    """Standard error is a terminal, and there is no tqdm; what is written there."""
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    return lambda: capsys.readouterr().err


def go(clock, *steps, phase="factor"):
    """Ticks at these seconds, with so much done of ten."""
    for clock.now, done in steps:
        progress.tick(phase, done, 10.0)


def test_a_bar_on_terminals_where_it_takes_long(clock, monkeypatch, capsys):
    written = on_terminal(monkeypatch, capsys)
    go(clock, (0, 0), (0.3, 1), (0.6, 2))
    assert written().rpartition("\x1b[K")[2] == "factor [######........................]  20%  1 s of about 3 s"
    go(clock, (2.9, 10))
    progress.tick("", 0.0, 0.0)
    assert written().endswith("\r\x1b[K")


@pytest.mark.parametrize("steps", [[(0, 0), (0.3, 1)], [(0, 0), (0.3, 3), (0.6, 6), (0.9, 9)]])
def test_no_bar_where_it_does_not(clock, monkeypatch, capsys, steps):
    written = on_terminal(monkeypatch, capsys)
    go(clock, *steps)
    assert written() == ""


def test_no_bar_where_nobody_sees_it(clock, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    go(clock, (0, 0), (5, 1))
    with log_context(Caller(progress=False)):
        monkeypatch.setattr(sys, "stderr", Terminal())
        go(clock, (0, 0), (5, 1))
        assert sys.stderr.getvalue() == ""
    monkeypatch.setenv("GPUSPLU_PROGRESS", "0")
    go(clock, (0, 0), (5, 1))
    assert sys.stderr.getvalue() == ""
    monkeypatch.undo()
    assert capsys.readouterr().err == ""


def test_a_bar_that_was_asked_for_is_lines_elsewhere(clock, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with log_context(Caller(progress=True)):
        go(clock, (0, 0), (0.1, 5), (0.11, 5.1), (0.2, 10))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("]")[1].split()[0] for line in lines] == ["0%", "50%", "100%"]


def test_phases_of_unknown_length(clock, monkeypatch, capsys):
    written = on_terminal(monkeypatch, capsys)
    clock.now = 0.0
    progress.tick("ordering", 0.0, 0.0)
    clock.now = 1.9
    progress.tick("ordering", 0.0, 0.0)
    assert written() == ""
    clock.now = 4.0
    progress.tick("ordering", 0.0, 0.0)
    assert written().endswith("ordering 4 s")


def test_what_lasts_is_said_in_the_log_now_and_then(clock, caplog):
    caplog.set_level(logging.INFO, "gpusplu")
    go(clock, *((k / 10, k / 10) for k in range(95)))
    assert caplog.messages == [
        "factor has taken 2 s, 20% of it is done",
        "factor has taken 4 s, 40% of it is done",
        "factor has taken 8 s, 80% of it is done",
    ]


def test_tqdm_where_it_is_installed(clock, monkeypatch):
    made = []

    class Bar:
        def __init__(self, **how):
            made.append(self)
            self.how, self.n, self.start_t, self.calls = how, 0, 100.0, []

        def __getattr__(self, name):
            return lambda: self.calls.append(name)

    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    monkeypatch.setattr(sys, "stderr", Terminal())
    go(clock, (0, 0), (1, 2), (2, 4))
    (bar,) = made
    assert (bar.n, bar.how["total"], bar.how["desc"], bar.start_t) == (40, 100, "factor", pytest.approx(98.95))
    progress.tick("", 0.0, 0.0)
    assert bar.calls == ["refresh", "refresh", "close"]
    assert sys.stderr.getvalue() == ""


def test_a_function_is_told_how_far_it_is():
    seen = []
    gs.splu(LONG, ordering="nd", progress=lambda *step: seen.append(step))
    assert {phase for phase, _, _ in seen} <= {"canonicalize", "matching", "ordering", "symbolic", "factor", "solve"}
    shares = [done / total for phase, done, total in seen if phase == "factor" and total]  # 0: not known yet
    assert shares == sorted(shares) and 0 < shares[-1] <= 1


class Progress:
    """Phases that a function was told of, called often; how long calls last is a matter of the machine."""

    def __init__(self):
        self.phases = []

    def __call__(self, phase, done, total):
        self.phases.append(phase)

    def of(self, call):
        """What `call` tells."""
        self.phases.clear()
        call()
        return set(self.phases)


@pytest.mark.parametrize("make", [gs.splu, gs.cholesky, gs.ldlt])
def test_a_function_is_told_of_later_calls_of_the_factor_too(make):
    told = Progress()
    lu = make(LONG, ordering="nd", engine="cpu", progress=told)
    assert "factor" in told.of(lambda: lu.refactor(2 * LONG.data))
    assert "factor" in told.of(lambda: lu.refactor(2 * LONG))
    b = np.ones((LONG.shape[0], 30), order="F")
    assert "factor" in told.of(lambda: lu.refactor_solve(LONG.data, b[:, 0]))
    assert "solve" in told.of(lambda: lu.solve(b))
    np.testing.assert_allclose(LONG @ lu.solve(b), b, atol=1e-9)


def test_later_calls_tell_in_whatever_thread_makes_them():
    told = Progress()
    lu = gs.cholesky(LONG, ordering="nd", engine="cpu", progress=told)
    told.phases.clear()
    thread = threading.Thread(target=lu.refactor, args=(2 * LONG.data,))
    thread.start()
    thread.join()
    assert "factor" in told.phases


@pytest.mark.parametrize("make", [gs.splu_batch, gs.cholesky_batch])
def test_a_function_is_told_of_later_calls_of_a_batch(make):
    A, told = gallery.poisson(14, 14, 14), Progress()
    values = np.repeat(A.data[None], 600, axis=0)
    batch = make(A, values, engine="cpu", progress=told)
    assert "factor" in told.of(lambda: batch.refactor(2 * values))
    assert "factor" in told.of(lambda: batch.refactor_solve(values, np.ones(A.shape[0])))


def test_a_function_can_stop_a_refactorization():
    def stop(phase, done, total):
        if stopping:
            raise TimeoutError(phase)

    stopping = []
    lu, b = gs.splu(LONG, ordering="nd", engine="cpu", progress=stop), np.ones(LONG.shape[0])
    before = lu.solve(b)
    stopping.append(True)
    with pytest.raises(TimeoutError):
        lu.refactor(2 * LONG.data)
    stopping.clear()
    np.testing.assert_array_equal(lu.solve(b), before)


def test_nobody_is_told_of_calls_of_a_factor_that_was_made_without():
    """Nor of those of the calls after it, which may take over what spsolve leaves of its factor."""
    told = Progress()
    gs.spsolve(LONG, np.ones(LONG.shape[0]), progress=told)
    told.phases.clear()
    gs.spsolve(LONG, np.ones(LONG.shape[0]))
    gs.splu(LONG).refactor(LONG.data)
    assert told.phases == []


def test_a_function_can_stop_a_call():
    class Enough(Exception):
        pass

    def stop(phase, done, total):
        raise Enough(phase)

    lu = gs.splu(LONG, ordering="nd")
    with pytest.raises(Enough):
        gs.splu(LONG, ordering="nd", deterministic=True, progress=stop)
    assert backward_error(LONG, lu.solve(np.ones(LONG.shape[0])), np.ones(LONG.shape[0])) < 1e-14


def test_streams_without_a_terminal(monkeypatch):
    closed = Terminal()
    assert bars.is_terminal(closed)
    closed.isatty = lambda: False
    assert not bars.is_terminal(closed)
    assert not bars.is_terminal(None)
    closed = io.StringIO()
    closed.close()
    assert not bars.is_terminal(closed)
