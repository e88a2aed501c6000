"""Signals while the host waits for a device, and at any other place of a call: they get through, and factors stay."""

import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import _core
from gpusplu.common.timing import backward_error
from gpusplu.cuda import waiting
from support import fake_cupy
from support.column_engines import harder
from support.small_matrices import EPS, random_matrix, rhs, spd_matrix

LONG = 30.0  # seconds of a device that nobody waits for to the end
A, B = random_matrix(30), spd_matrix(30)
MAKES = pytest.mark.parametrize(
    ("make", "A"),
    [
        (lambda A: gs.splu(A, engine="supernodal"), A),
        (lambda A: gs.splu(A, engine="sflu"), A),
        (lambda A: gs.cholesky(A, engine="supernodal"), B),
        (lambda A: gs.splu(A, engine="supernodal", device_memory=1 << 20), A),
    ],
    ids=["supernodal", "sflu", "cholesky", "limited"],
)
QUERY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)  # as cuStreamQuery
on_device = fake_cupy.asarray


class Interrupt(BaseException):
    """As KeyboardInterrupt, with which one test would end all."""


@contextmanager
def signalled(waited_for):
    """A signal comes when somebody waits; its handler raises."""

    def handler(number, frame):
        raise Interrupt

    def send():
        if waited_for.wait(LONG):
            time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGUSR1)

    sender, before = threading.Thread(target=send), signal.signal(signal.SIGUSR1, handler)
    sender.start()
    try:
        with pytest.raises(Interrupt):
            yield
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)


def interrupted(device, call):
    """`call` is left while it waits for a device that is busy."""
    device.be_busy(LONG)
    start = time.perf_counter()
    with signalled(device.waited_for):
        call()
    assert time.perf_counter() - start < LONG / 2
    device.be_busy(0.05)  # what was asked of it goes on for a while


def held(factor, A, b=None):
    """What A has to be multiplied by, for the factor to be one of it."""
    b = rhs(A.shape[0]) if b is None else b
    x = np.asarray(factor.solve(b))
    (found,) = [by for by in (1, 2, 3) if backward_error(by * A, x, b) < 1000 * EPS["d"]]
    return found


@pytest.fixture
def device(device, cupy):
    return device


@MAKES
def test_refactorizations_leave_the_values_before(device, make, A):
    factor = make(A)
    for values in (2 * A.data, 2 * A, 2 * A):
        interrupted(device, lambda values=values: factor.refactor(values))
        before = device.counts["synchronize"]
        assert held(factor, A) == 1
        assert device.counts["synchronize"] > before + 1  # what had been asked for was waited for
    assert factor.stats.n_refactor == 0
    factor.refactor(2 * A.data)
    assert held(factor, A) == 2


@MAKES
def test_refactorization_and_solve_in_one_leave_the_values_before(device, make, A):
    factor, b = make(A), rhs(A.shape[0])
    factor.refactor(3 * A.data)
    for where in (np.asarray, on_device):
        interrupted(device, lambda where=where: factor.refactor_solve(where(2 * A.data), where(b)))
        assert held(factor, A) == 3


@MAKES
def test_solves_leave_what_was_factored(device, make, A):
    """Values of the device, too, that no call had waited for yet."""
    factor, b = make(A), rhs(A.shape[0])
    solves = (
        lambda: factor.solve(b),
        lambda: factor.solve(on_device(b)),
        lambda: factor.solve(rhs(b.size, "d", (5,))),
    )
    for solve in solves:
        for by in (2, 1):
            factor.refactor(on_device(by * A.data))
            interrupted(device, solve)
            assert held(factor, A) == by
    assert factor.stats.n_refactor == 6


def test_pivots_of_values_that_a_solve_was_to_look_at(device):
    """What kernels counted is not forgotten with the solve."""
    singular = random_matrix()
    factor = gs.splu(singular, engine="supernodal")
    values = singular.data.copy()
    values[singular.indices == 7] = 0
    factor.refactor(on_device(values))
    interrupted(device, lambda: factor.solve(rhs(singular.shape[0])))
    with pytest.raises(RuntimeError, match="singular"):
        factor.solve(rhs(singular.shape[0]))
    assert held(factor, singular) == 1


def test_a_check_that_is_made_again(device):
    factor, b = gs.splu(A, engine="supernodal"), on_device(rhs(A.shape[0]))
    bad = A.data.copy()
    bad[3] = np.nan
    factor.refactor_solve(on_device(bad), b, check="later")
    interrupted(device, factor.check)
    with pytest.raises(gs.NonFiniteError):
        factor.check()


def test_a_batch_says_that_it_has_to_be_refactored(device):
    values = np.array([B.data, 2 * B.data])
    batch = gs.cholesky_batch(B, values, engine="supernodal")
    interrupted(device, lambda: batch.refactor(3 * values))
    with pytest.raises(RuntimeError, match="was interrupted"):
        batch.solve(np.ones(B.shape[0]))
    batch.refactor(3 * values)
    x = batch.solve(np.ones(B.shape[0]))
    interrupted(device, lambda: batch.solve(np.ones(B.shape[0])))
    np.testing.assert_array_equal(batch.solve(np.ones(B.shape[0])), x)
    np.testing.assert_allclose(3 * (B @ x[0]), 1)


def test_mixed_precision_leaves_the_values_before(device):
    factor = gs.splu(A, engine="supernodal", precision="mixed")
    interrupted(device, lambda: factor.refactor(2 * A.data))
    assert held(factor, A) == 1
    interrupted(device, lambda: factor.solve(rhs(A.shape[0])))
    assert held(factor, A) == 1
    factor.refactor(2 * A.data)
    assert held(factor, A) == 2


def test_memory_stays_until_the_device_is_done_with_it(device):
    count = device.count

    def busy(what):
        count(what)
        if what == "move_status":  # the last of what is asked of it before the first wait for kernels
            device.be_busy(LONG)

    device.count = busy
    with signalled(device.waited_for):
        gs.splu(A, engine="supernodal")
    device.count = count
    gs.cache_clear()
    assert device.used > 8 * A.nnz
    device.be_busy(0.0)
    end = time.perf_counter() + 30
    while device.used and time.perf_counter() < end:
        gs.cache_clear()
        time.sleep(0.01)
    assert not device.used


# ---- at any line


class Leave:
    """Raises before line number `line` of what engines do."""

    def __init__(self, line):
        self.left = line

    def __call__(self, frame, event, argument):
        if "/gpusplu/engines/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            self.left -= 1
            if not self.left:
                raise Interrupt
        return self


def left_at_every_line(call, then, step=1):
    """`call` is left before each of its lines, one after another, and `then(line)` looks what that has done."""
    line = 1 - step
    while True:
        line += step
        before = sys.gettrace()
        sys.settrace(Leave(line))
        try:
            call()
        except Interrupt:
            pass
        else:
            return line
        finally:
            sys.settrace(before)
        then(line)


@pytest.mark.parametrize("where", [np.asarray, on_device], ids=["host", "device"])
@pytest.mark.parametrize("what", ["refactor", "canonical", "refactor_solve", "solve"])
def test_signals_at_any_line(device, what, where):
    factor, b = gs.splu(A, engine="supernodal"), rhs(A.shape[0])
    found, given = [], where(b)
    calls = {
        "refactor": lambda: factor.refactor(where(2 * A.data)),
        "canonical": lambda: factor.refactor(2 * A),
        "refactor_solve": lambda: factor.refactor_solve(where(2 * A.data), given),
        "solve": lambda: factor.solve(given),
    }

    def look(line):
        found.append(held(factor, A, b))
        factor.refactor(where(A.data))
        assert held(factor, A, b) == 1

    calls[what]()
    factor.refactor(where(A.data))
    lines = left_at_every_line(calls[what], look)
    assert lines > 20
    assert set(found[:10]) == {1}
    assert set(found) <= {1, 2}
    if where is np.asarray:  # else there are more lines once graphs of the caller's arrays are recorded
        assert found == sorted(found)  # the new values, from where on they were taken over


@pytest.mark.parametrize("what", ["accepted", "singular", "solved"])
def test_signals_at_any_line_of_a_check(device, what):
    """The next check accepts the values, or raises: no factor is left with values that were never accepted."""
    factor, b = gs.splu(A, engine="supernodal"), rhs(A.shape[0])
    given, new, held_values = on_device(b), on_device((0 if what == "singular" else 2) * A.data), on_device(3 * A.data)
    found, raised, texts = [], [], ("check was interrupted", "singular", "holds no values")

    def prepare():
        factor.refactor(held_values)
        if what == "solved":
            factor.solve(given, check="later")
        else:
            factor.refactor(new, check="later")

    def check():
        with pytest.raises(RuntimeError, match="singular") if what == "singular" else nullcontext():
            factor.check()

    def look(line):
        for _ in range(4):
            try:
                factor.check()
                found.append(held(factor, A, b))
                break
            except (gs.AccuracyError, RuntimeError) as error:
                raised.append(str(error))
                if "holds no values" in raised[-1]:
                    factor.refactor(A.data)
        prepare()

    prepare()
    lines = left_at_every_line(check, look)
    assert lines - 1 == len(found) > 40
    assert all(any(text in one for text in texts) for one in raised)
    assert set(found) <= {"accepted": {1, 2}, "singular": {1}, "solved": {3}}[what]


def test_signals_while_pivots_are_chosen(device):
    """The factor is of the values before, or of the new ones."""
    before = random_matrix(40)
    after, b, found = harder(before), rhs(40), []
    factors = [gs.splu(before, engine="sflu")]

    def look(line):
        x = np.asarray(factors[0].solve(b))
        found.append([matrix for matrix in (before, after) if backward_error(matrix, x, b) < 1000 * EPS["d"]])
        factors[0] = gs.splu(before, engine="sflu")

    lines = left_at_every_line(lambda: factors[0].refactor(after.data), look, step=9)
    assert lines > 500
    assert all(found) and found[0] == [before] and found[-1] == [after]


# ---- waits as such


def test_streams_are_asked_until_they_are_idle(monkeypatch):
    """And say themselves what went wrong."""
    asked, waited, answers = [], [], [600, 600, 0]

    def query(handle):
        asked.append(handle)
        return answers[min(len(asked), len(answers)) - 1]

    function = QUERY(query)
    monkeypatch.setattr(waiting, "stream_query", lambda: ctypes.cast(function, ctypes.c_void_p).value)
    stream = SimpleNamespace(ptr=17, synchronize=lambda: waited.append(1))
    waiting.wait_for_stream(stream)
    assert (asked, waited) == ([17] * 3, [])
    answers[2] = 700
    asked.clear()
    waiting.wait_for_stream(stream)
    assert (len(asked), waited) == (3, [1])
    monkeypatch.setattr(waiting, "stream_query", lambda: 0)
    waiting.wait_for_stream(stream)
    assert (len(asked), waited) == (3, [1, 1])
    other = threading.Thread(target=waiting.wait_for_stream, args=(stream,))
    monkeypatch.setattr(waiting, "stream_query", lambda: ctypes.cast(function, ctypes.c_void_p).value)
    other.start()
    other.join()
    assert (len(asked), waited) == (3, [1, 1, 1])  # no signals come to it: it waits by CUDA


def test_polls_are_close_first_and_rare_later():
    times = []

    def query(handle):
        times.append(time.perf_counter())
        return 600 * (times[-1] < times[0] + 0.2)

    function = QUERY(query)
    assert _core.poll(ctypes.cast(function, ctypes.c_void_p).value, 1, 600) == 0
    gaps = np.diff(times)
    late = gaps[np.array(times[1:]) > times[0] + 0.1]
    assert gaps[:10].min() < 2e-4  # other gaps may be those of a busy machine
    assert np.median(late) > 5e-4 and late.min() < 5e-3


def test_waits_for_whole_devices_are_left_too():
    ended = threading.Event()
    start, waited_for = time.perf_counter(), threading.Event()
    with signalled(waited_for):
        waiting.wait_interruptibly(lambda: waited_for.set() or ended.wait(LONG))
    assert time.perf_counter() - start < LONG / 2
    ended.set()
    with pytest.raises(ZeroDivisionError):
        waiting.wait_interruptibly(lambda: 1 / 0)


def test_waits_for_whole_devices_share_threads():
    by, ended, begun = [], threading.Event(), threading.Event()

    def wait():
        waiting.wait_interruptibly(lambda: by.append(threading.current_thread()))

    for _ in range(100):
        wait()
    assert len(set(by)) < 50 and threading.current_thread() not in by
    with signalled(begun):
        waiting.wait_interruptibly(lambda: begun.set() or ended.wait(LONG))
    wait()  # by another thread
    assert len(by) == 101
    ended.set()
