"""Log lines, verbose=, progress bars and functions passed as progress=."""

import io
import logging
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common import progress
from gpusplu.common.listeners import Caller, log_context
from gpusplu.common.timing import backward_error
from support.small_matrices import random_matrix, rhs, spd_matrix

A = random_matrix()
B = rhs(60)


@pytest.fixture
def log(caplog):
    """Messages of the logger, all of them."""
    caplog.set_level(logging.DEBUG, "gpusplu")
    return caplog


def of_phase(log, phase):
    """The one record of a phase."""
    (record,) = [record for record in log.records if record.phase == phase]
    return record


def test_a_line_a_phase(log):
    lu = gs.splu(A)
    for phase in ("canonicalize", "analyze", "factor"):
        record = of_phase(log, phase)
        assert record.levelno == logging.INFO and record.seconds == lu.stats.seconds[phase]
        assert record.getMessage().startswith(f"{phase} took ")
    assert "60 x 60" in of_phase(log, "canonicalize").getMessage()
    factored = of_phase(log, "factor")
    assert factored.predicted > 0 and " predicted: " in factored.getMessage()
    assert any(message.startswith("engine cpu: engine='auto' and ") for message in log.messages)
    assert any(message.startswith(f"ordering {lu.stats.ordering}") for message in log.messages)
    log.clear()
    lu.refactor(A.data)
    x = lu.solve(B)
    assert (of_phase(log, "refactor").levelno, of_phase(log, "refactor").predicted > 0) == (logging.DEBUG, True)
    solved = of_phase(log, "solve").getMessage()
    assert f"1 right-hand side, backward error {lu.backward_error:.1e}" in solved
    assert backward_error(A, x, B) < 1e-14


WAYS = {
    "splu": lambda **how: gs.splu(A, **how),
    "splu, the long way": lambda **how: gs.splu(A, ordering="amd", **how),
    "factorized": lambda **how: gs.factorized(A, **how),
    "spsolve": lambda **how: gs.spsolve(A, B, **how),
    "spsolve, sparse": lambda **how: gs.spsolve(A, sp.eye_array(60, 3, format="csc"), **how),
    "cholesky": lambda **how: gs.cholesky(spd_matrix(), **how),
    "ldlt": lambda **how: gs.ldlt(gallery.kkt(60, 20, 0.1), **how),
    "analyze": lambda **how: gs.analyze(A, **how),
    "splu_batch": lambda **how: gs.splu_batch(A, np.stack([A.data, 2 * A.data]), **how),
    "cholesky_batch": lambda **how: gs.cholesky_batch(spd_matrix(), [spd_matrix().data], **how),
}


@pytest.mark.parametrize("way", WAYS)
def test_verbose_prints_the_same(way, caplog, capsys):
    caplog.set_level(logging.INFO, "gpusplu")
    WAYS[way](verbose=1)
    printed = capsys.readouterr().out.splitlines()
    assert printed == [f"gpusplu: {message}" for message in caplog.messages]
    phases = [record.phase for record in caplog.records if record.phase]
    assert phases == (["canonicalize", "analyze"] if way == "analyze" else ["canonicalize", "analyze", "factor"])
    WAYS[way]()
    assert capsys.readouterr().out == ""


def test_verbose_of_what_follows(capsys):
    loud, quiet = gs.splu(A, verbose=2), gs.splu(A, verbose=1)
    capsys.readouterr()
    quiet.refactor(A.data), quiet.solve(B)
    assert capsys.readouterr().out == ""
    loud.refactor(A.data), loud.solve(np.stack([B, B], axis=1))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["refactor", "solve"] and "2 right-hand sides" in lines[1]


def test_analyses_that_are_remembered(log):
    for factor in (gs.splu, gs.cholesky):
        matrix = spd_matrix()
        factor(matrix)
        log.clear()
        factor(matrix)
        call = gs.cache_info().hits + gs.cache_info().misses - 1
        assert log.messages[0].startswith(f"analysis of call {call} reused")


def test_analyses_that_are_dropped(log):
    def other_values(**how):
        matrix = gallery.power_mesh(8, 8)
        lu = gs.splu(matrix, **how)
        rng = np.random.default_rng(0)
        matrix.data = np.exp(rng.normal(scale=30, size=matrix.nnz)) * rng.choice([-1, 1], matrix.nnz)
        log.clear()
        return lu, gs.splu(matrix, **how)

    _, lu = other_values(ordering="amd")
    assert lu.stats["analysis"] == "made for this matrix"
    assert (
        log.messages[0] == "analysis of call 1 dropped: it is unsuitable for these values, or the factorization failed"
    )
    gs.cache_clear()
    _, lu = other_values()
    assert lu.stats["analysis"] == "made for this matrix"
    assert log.messages[0].startswith("analysis of call 1 dropped: ")


def test_repairs(log):
    matrix = gallery.circuit(12, 12).matrix()
    lu = gs.splu(matrix)
    log.clear()
    lu.refactor(np.random.default_rng(0).normal(size=matrix.nnz) ** 9)
    assert lu.stats.n_reanalyzed + lu.stats.n_repivoted == 1
    assert [r.levelno for r in log.records] == [logging.DEBUG, logging.INFO]
    assert log.messages[1] in (
        "matching and ordering repeated with newer values: 1",
        "pivots chosen again by threshold partial pivoting: 1",
    )
    gs.splu_batch(A, [A.data, 0 * A.data, A.data], errors="flag")
    assert "of 3 systems 2 right, 1 singular" in log.messages


def test_ldlt_replaced_by_lu(log):
    matrix = gallery.poisson(30, 30)
    lu = gs.splu(matrix)
    assert lu.stats.symmetric
    log.clear()
    lu.refactor(matrix.data * np.random.default_rng(0).uniform(0.9, 1.1, matrix.nnz))
    assert not lu.stats.symmetric
    assert any("LDL^T was replaced by LU" in message for message in log.messages)


def test_failed_mixed_precision(log):
    lu = gs.splu(A, precision="mixed")
    log.clear()
    lu.refactor(1e40 * A.data)
    (record,) = [record for record in log.records if record.levelno == logging.WARNING]
    assert record.getMessage() == (
        "mixed precision failed, factoring in double precision: values are out of the range of single precision"
    )


def test_threads_are_told_of_their_own_calls(capsys):
    def quiet():
        for _ in range(20):
            gs.splu(spd_matrix()).solve(np.ones(50))

    other = threading.Thread(target=quiet)
    other.start()
    for _ in range(20):
        gs.splu(A, verbose=1)
    other.join()
    assert "50 x 50" not in capsys.readouterr().out


LONG = gallery.poisson(36, 36, 36)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """A clock that the test advances."""

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


def test_no_bar_where_it_is_over_soon(clock, monkeypatch, capsys):
    written = on_terminal(monkeypatch, capsys)
    go(clock, (0, 0), (0.3, 3), (0.6, 6), (0.9, 9))
    assert written() == ""


@pytest.mark.parametrize("why", ["no terminal", "closed", "none", "the caller", "the environment"])
def test_no_bar_where_nothing_shows_it_or_the_user_wants_none(clock, monkeypatch, why):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    stream = {"no terminal": io.StringIO(), "closed": io.StringIO(), "none": None}.get(why, Terminal())
    if why == "closed":
        stream.close()
    if why == "the environment":
        monkeypatch.setenv("GPUSPLU_PROGRESS", "0")
    monkeypatch.setattr(sys, "stderr", stream)
    with log_context(Caller(progress=False if why == "the caller" else None)):
        go(clock, (0, 0), (5, 1))
    assert why in ("closed", "none") or stream.getvalue() == ""


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
        "factor has taken 2 s, 20% done",
        "factor has taken 4 s, 40% done",
        "factor has taken 8 s, 80% done",
    ]


def test_tqdm_where_it_is_installed(clock, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "gpusplu")
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
    assert bar.calls == ["refresh", "clear", "refresh", "close"]  # a line of the log between
    assert sys.stderr.getvalue() == ""


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
    """In any thread; calls of factors that were made without it report nothing."""
    steps, told = [], Progress()
    lu = make(LONG, ordering="nd", engine="cpu", progress=lambda *step: (steps.append(step), told(*step)))
    assert set(told.phases) <= {"canonicalize", "matching", "ordering", "symbolic", "factor", "solve"}
    shares = [done / total for phase, done, total in steps if phase == "factor" and total]  # 0: not known yet
    assert shares == sorted(shares) and 0 < shares[-1] <= 1
    b = np.ones((LONG.shape[0], 30), order="F")

    def in_thread(*arguments):
        with ThreadPoolExecutor(1) as other:
            other.submit(lu.refactor, *arguments).result()

    for call in (lambda: lu.refactor(2 * LONG), lambda: in_thread(LONG.data)):
        assert "factor" in told.of(call)
    assert "factor" in told.of(lambda: lu.refactor_solve(LONG.data, b[:, 0]))
    assert "solve" in told.of(lambda: lu.solve(b))
    np.testing.assert_allclose(LONG @ lu.solve(b), b, atol=1e-9)


@pytest.mark.parametrize("refactor", [True, False])
def test_a_function_can_stop_a_call(refactor):
    def stop(phase, done, total):
        if stopping:
            raise TimeoutError(phase)

    stopping, b = [], np.ones(LONG.shape[0])
    lu = gs.splu(LONG, ordering="nd", engine="cpu", progress=stop)
    before = lu.solve(b)
    stopping.append(True)
    with pytest.raises(TimeoutError):
        lu.refactor(2 * LONG.data) if refactor else gs.splu(LONG, ordering="nd", deterministic=True, progress=stop)
    stopping.clear()
    np.testing.assert_array_equal(lu.solve(b), before)


@pytest.mark.parametrize(("make", "count"), [(gs.splu_batch, 160), (gs.cholesky_batch, 400)])
def test_a_function_is_told_of_later_calls_of_a_batch(make, count):
    A, told = gallery.poisson(14, 14, 14), Progress()
    values = np.repeat(A.data[None], count, axis=0)
    batch = make(A, values, engine="cpu", progress=told)
    assert "factor" in told.of(lambda: batch.refactor(2 * values))
    assert "factor" in told.of(lambda: batch.refactor_solve(values, np.ones(A.shape[0])))


def test_nobody_is_told_of_calls_of_a_factor_that_was_made_without():
    """Nor of those of the calls after it, which may take over what spsolve leaves of its factor."""
    told = Progress()
    gs.spsolve(LONG, np.ones(LONG.shape[0]), progress=told)
    told.phases.clear()
    gs.spsolve(LONG, np.ones(LONG.shape[0]))
    gs.splu(LONG).refactor(LONG.data)
    assert told.phases == []
