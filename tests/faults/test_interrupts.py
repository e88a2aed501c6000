"""Signals, and callbacks that raise, while the core runs: they get through soon, memory comes back, factors stay.

Calls look around more often here than they do for users, so that what is interrupted can be small. A handler of our own
raises, and only while a call that is to be interrupted lasts: a signal that comes late must not end the test run.
"""

import gc
import os
import signal
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import _core, gallery
from gpusplu.cost.calibration import for_core
from gpusplu.engines import registry
from gpusplu.engines.supernodal.plan import Limits, make_plan
from support.analyses import factor_canonical
from support.dense_batch import OneByOne
from support.front_plans import Pattern
from support.processes import run

SOON = 1.0  # seconds of the main thread's processor time, which others on the machine do not add to
LATE = 20.0  # seconds: whoever waits meanwhile does not wait for the end
OFTEN = 0.004  # seconds between looks: what the system's coarse clock can tell apart


@contextmanager
def watching(callback):
    before = _core.watch(callback, OFTEN)
    try:
        yield
    finally:
        _core.watch(before)


@contextmanager
def handling(number, handler):
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def moment():
    """Processor time of the main thread, and time [s]."""
    clock = time.pthread_getcpuclockid(threading.main_thread().ident)
    return time.clock_gettime(clock), time.perf_counter()


class Sender:
    """Sends a signal from another thread, soon after a call of the core first told of a phase."""

    def __init__(self, phase, number):
        self.phase, self.number, self.thread, self.sent = phase, number, None, ()

    def __call__(self, phase, done, total):
        if phase == self.phase and self.thread is None:
            self.thread = threading.Thread(target=self.send)
            self.thread.start()

    def send(self):
        time.sleep(0.002)
        self.sent = moment()
        os.kill(os.getpid(), self.number)


class Interrupt(BaseException):
    """As KeyboardInterrupt, with which one test would end all."""


def interrupted(call, phase, error=Interrupt, again=lambda: None, attempts=8):
    """`call` raises because a signal arrives in `phase`, soon. Where it was over before, `again` and once more."""
    while True:
        sender, ended = Sender(phase, signal.SIGINT), []

        def handler(number, frame, ended=ended):
            if not ended and frame.f_locals.get("phase") != "":  # nor while the callback gets the end
                raise error

        with handling(signal.SIGINT, handler), watching(sender):
            try:
                call()
            except error:
                ended.append(moment())
            assert sender.thread, f"nobody was told of {phase}"
            late = not ended
            ended.append(moment())
            sender.thread.join()
        attempts -= 1
        if not late:
            break
        assert attempts, f"{phase} was over before the signal was seen"
        again()
    processor, wall = np.subtract(ended[0], sender.sent)
    assert processor < SOON and wall < LATE


def address_space():
    """Bytes that the process has allocated, whether or not they are resident."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def cube():
    return gallery.named("poisson:36x36x36")


@pytest.fixture(scope="module")
def column_factor():
    """By columns, and its values; half a second of work, and some hundredths of one for new values."""
    A = gallery.named("poisson:400x400")
    canonical = _core.canonical("csc", A.shape[0], A.indptr, A.indices)
    symbolic = _core.analyze(canonical.ptr, canonical.ind, A.data, for_core(), method="column")
    return lambda: factor_canonical(symbolic, canonical, A.data), A


def hard_to_match(n):
    """Columns with the same few rows, and entries of all sizes: searches for augmenting paths go far."""
    rng = np.random.default_rng(3)
    row = (np.arange(n)[:, None] + rng.integers(0, 3000, (n, 10))) % n
    data = np.exp(rng.normal(0, 8, row.size))
    return sp.coo_array((data, (row.ravel(), np.repeat(np.arange(n), 10))), shape=(n, n)).tocsc()


def test_ctrl_c():
    """The real one, with the handler and the looks that a user has."""
    code = """
import os, signal, threading, numpy as np, gpusplu as gs
A, small, b = gs.gallery.poisson(44, 44, 44), gs.gallery.poisson(20, 20), np.ones(400)
gs.cholesky(small).solve(b)
threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        gs.cholesky(A, engine="cpu")
except KeyboardInterrupt:
    print("interrupted", gs.cholesky(small).solve(b).shape)
"""
    assert run(code) == "interrupted (400,)\n"


def analysis(phase):
    """A call that spends its time in this phase of an analysis."""
    if phase == "canonicalize":
        row, column = np.random.default_rng(7).integers(0, 800_000, (2, 10_000_000), dtype=np.int32)
        return lambda: _core.canonical("coo", 800_000, row, column)
    if phase == "matching":
        A = hard_to_match(60_000)
        return lambda: gs.analyze(A, engine="cpu")
    A = gallery.named("poisson:3000000")  # three diagonals, by fronts in the order that it has
    pattern, options = Pattern(A), {"cholesky": True, "ordering": "natural", "method": "front"}
    call = lambda: _core.analyze(pattern.ptr, pattern.ind, A.data, for_core(), **options)  # noqa: E731
    if phase == "symbolic":
        return call
    symbolic = call()
    return lambda: make_plan(symbolic, pattern, A.dtype, Limits())


@pytest.mark.parametrize("phase", ["canonicalize", "matching", "symbolic", "plan"])
def test_analyses(phase):
    interrupted(analysis(phase), phase)


@pytest.mark.parametrize("ordering", ["nd", "amd"])
def test_ordering(ordering):
    large, small = gallery.named("poisson:64x64x64"), gallery.named("poisson:60x60")
    before = gs.splu(small, engine="cpu", ordering=ordering).perm_c
    interrupted(lambda: gs.analyze(large, engine="cpu", ordering=ordering), "ordering")
    gs.cache_clear()
    np.testing.assert_array_equal(gs.splu(small, engine="cpu", ordering=ordering).perm_c, before)


@pytest.mark.parametrize("kind", ["columns", "lu", "cholesky", "ldlt"])
def test_interrupted_factorizations_give_their_memory_back(cube, column_factor, kind):
    """The first ones leave memory that the core keeps for later calls. A leak grows with every call."""
    if kind == "columns":
        factor, size = column_factor[0], column_factor[0]().stats()["bytes"]
    else:
        symbolic = gs.analyze(cube, engine="cpu", cholesky=kind == "cholesky", ldlt=kind == "ldlt")
        factor, size = lambda: symbolic.factor(cube.data), symbolic.factor(cube.data).stats.bytes
    sizes = []
    for _ in range(6):
        interrupted(factor, "factor")
        sizes.append(address_space())
    assert sizes[5] - sizes[1] < size, sizes


@pytest.mark.parametrize("how", ["columns", "columns, refactored", "splu", "cholesky"])
def test_an_interrupted_refactorization_leaves_the_factor(column_factor, how):
    held = []

    def make():
        """Another factor, for a refactorization that was over before the signal came."""
        if how.startswith("columns"):
            factor, A = column_factor
            held[:] = [factor()]
            if how.endswith("refactored"):
                held[0].refactor(A.data + 0.1 * (A.data > 0))
        else:
            A = gallery.named("poisson:34x34x34")
            held[:] = [getattr(gs, how)(A, engine="cpu")]
        return A

    A = make()
    b = np.ones(A.shape[0])
    before = held[0].solve(b)
    interrupted(lambda: held[0].refactor(3 * A.data), "factor", again=make)
    np.testing.assert_array_equal(held[0].solve(b), before)
    if not how.startswith("columns"):
        assert held[0].stats.n_refactor == 0
    held[0].refactor(3 * A.data)
    np.testing.assert_allclose(A @ held[0].solve(b), b / 3, atol=1e-9)


def test_solves_of_many_right_hand_sides():
    A = gallery.named("poisson:26x26x26")
    ch = gs.cholesky(A, engine="cpu")
    b = np.ones((A.shape[0], 1200), order="F")
    before = ch.solve(b[:, 0])
    interrupted(lambda: ch.solve(b), "solve")
    np.testing.assert_array_equal(ch.solve(b[:, 0]), before)


def test_work_goes_on_after_handlers_that_do_not_raise():
    """And they run meanwhile, not after it."""
    A = gallery.named("poisson:40x40x40")
    symbolic, b = gs.analyze(A, engine="cpu", cholesky=True), np.ones(A.shape[0])
    expected, seen = symbolic.factor(A.data).solve(b), []
    with handling(signal.SIGALRM, lambda *_: seen.append(time.perf_counter())):
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        with watching(lambda *_: None):
            factor = symbolic.factor(A.data)
        end = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert seen[0] < end - 0.02
    np.testing.assert_array_equal(factor.solve(b), expected)


def test_what_a_handler_raises_leaves_the_call(cube):
    interrupted(lambda: gs.splu(cube, engine="cpu"), "factor", TimeoutError)


def test_a_handler_may_use_the_library_but_not_the_factor_that_is_in_use():
    A = gallery.named("poisson:34x34x34")
    lu, b, told = gs.splu(A, engine="cpu"), np.ones(A.shape[0]), []
    other = gs.splu(gallery.named("poisson:20x20"), engine="cpu")

    def handler(*_):
        told.append(other.solve(np.ones(400)))
        with pytest.raises(RuntimeError, match="the call that this handler interrupts"):
            lu.solve(b)

    with handling(signal.SIGUSR1, handler):
        sender = Sender("factor", signal.SIGUSR1)
        with watching(sender):
            lu.refactor(2 * A.data)
    assert told
    np.testing.assert_allclose(2 * (A @ lu.solve(b)), b, atol=1e-9)


def test_threads_that_ask_for_the_factor_do_not_keep_the_interpreter():
    """Whoever changes it holds its lock, and has to get the interpreter's to look for signals."""
    A = gallery.named("poisson:30x30x30")
    lu, ended, asked = gs.splu(A, engine="cpu"), threading.Event(), []

    def ask():
        while not ended.is_set():
            asked.append((lu.stats.n_refactor, lu.nnz, lu.perm_c.size, lu.slogdet()[0]))

    thread, told = threading.Thread(target=ask), []
    thread.start()
    with watching(lambda *progress: told.append(progress)):
        for _ in range(3):
            lu.refactor(2 * A.data)
    ended.set()
    thread.join(10)
    assert not thread.is_alive() and told and asked


def test_other_threads_see_no_signals_but_stop_by_their_callback(cube):
    symbolic, raised, phases = gs.analyze(cube, engine="cpu", cholesky=True), [], []

    def stop(phase, done, total):
        phases.append((phase, done <= total))
        if len(phases) == 3:
            raise InterruptedError("enough")

    def work():
        with watching(stop):
            try:
                symbolic.factor(cube.data)
            except InterruptedError as error:
                raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while not phases:
        time.sleep(1e-3)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    thread.join()
    assert raised
    assert phases[:3] == [("factor", True)] * 3


def test_a_callback_is_told_of_the_end():
    A, told = gallery.named("poisson:30x30x30"), []
    with watching(lambda *progress: told.append(progress)):
        gs.cholesky(A, engine="cpu")
    assert told[-1] == ("", 0.0, 0.0) and len(told) > 1
    done = [part for phase, part, total in told if phase == "factor"]
    assert done == sorted(done)
    before = _core.watch(told.append)
    assert _core.watch(before) == told.append


@pytest.mark.parametrize("make", [gs.splu, gs.cholesky])
def test_what_a_handler_raises_at_the_end_of_a_call_leaves_it(make):
    """After the last poll, when the callback gets the end; also where the work failed by itself."""
    A = gallery.named("poisson:30x30x30")
    if make is gs.cholesky:
        A[[5], [5]] = -1.0  # not positive definite, which is found by factoring
    told = []

    def tell(phase, done, total):
        told.append(phase)
        if phase == "" and "factor" in told:
            signal.raise_signal(signal.SIGUSR1)  # its handler runs before the next line of Python

    def handler(*_):
        raise Interrupt

    with handling(signal.SIGUSR1, handler), watching(tell), pytest.raises(Interrupt):
        make(A, engine="cpu")
    assert told[-1] == ""
    x = gs.splu(A, engine="cpu").solve(np.ones(A.shape[0]))
    assert np.isfinite(x).all()


@pytest.mark.parametrize("engine", ["cpu", "one_by_one"])
def test_a_batch_that_was_interrupted(engine):
    """It says so if its systems are factored side by side; one by one, the next call factors those that are left."""
    A = gallery.named("poisson:14x14x14")
    values, b = np.repeat(A.data[None], 60 if engine == "cpu" else 40, axis=0), np.ones(A.shape[0])
    with registry.registered(OneByOne()):
        batch = gs.splu_batch(A, values, engine=engine)
    batch.solve(b)
    interrupted(lambda: batch.refactor(2 * values), "factor")
    if engine == "cpu":
        with pytest.raises(RuntimeError, match="was interrupted"):
            batch.solve(b)
        batch.refactor(2 * values)
    for x in batch.solve(b):
        np.testing.assert_allclose(2 * (A @ x), b, atol=1e-9)


@pytest.fixture(scope="module")
def factors():
    """By columns, by fronts and of Cholesky: some millions of entries."""
    square, cube = gallery.named("poisson:300x300"), gallery.named("poisson:32x32x32")
    triangle = sp.triu(square, format="csc")
    return {
        "columns": gs.splu(triangle + 0.1 * sp.tril(square, -1, format="csc"), engine="cpu"),
        "fronts": gs.splu(cube + 1e-3 * sp.triu(cube, 1, format="csc"), ordering="nd", engine="cpu"),
        "cholesky": gs.cholesky(cube, engine="cpu"),
    }


@pytest.mark.parametrize(
    ("kind", "name", "arguments"),
    [
        ("fronts", "solve_L", ("N",)),
        ("fronts", "solve_U", ("N",)),
        ("fronts", "solve_U", ("T",)),
        ("cholesky", "solve_L", ()),
        ("cholesky", "solve_Lt", ()),
        ("cholesky", "sample", ()),
    ],
)
def test_solves_with_one_triangle(factors, kind, name, arguments):
    factor = factors[kind]
    solve, b = getattr(factor, name), np.ones((factor.shape[0], 60), order="F")
    before = solve(b[:, :1], *arguments)
    interrupted(lambda: solve(b, *arguments), "solve")
    np.testing.assert_array_equal(solve(b[:, :1], *arguments), before)


@pytest.mark.parametrize("kind", ["columns", "fronts", "cholesky"])
@pytest.mark.parametrize("name", ["lower", "upper"])
def test_extraction_of_triangles(factors, kind, name):
    factor = factors[kind]
    core, _ = factor.parts()
    b = np.ones(factor.shape[0])
    before, solution = getattr(core, name)(), factor.solve(b)
    interrupted(getattr(core, name), "extract")
    for array, expected in zip(getattr(core, name)(), before, strict=True):
        np.testing.assert_array_equal(array, expected)
    np.testing.assert_array_equal(factor.solve(b), solution)
