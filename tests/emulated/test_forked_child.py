"""GPU engines in a forked child: CUDA does not survive a fork, and nobody waits for a thread that is not there."""

import threading

import numpy as np
import pytest

import gpusplu as gs
from faults.forking import child
from gpusplu.engines.problem import Request
from support.small_matrices import random_matrix

pytestmark = [
    pytest.mark.usefixtures("cupy"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
A = random_matrix()
B = np.ones(A.shape[0])
TOLD = "EngineUnavailableError: this process was forked from one that uses CUDA"


@pytest.mark.parametrize("engine", ["supernodal", "glu", "sflu", "crisscross"])
def test_child_is_told(device, engine):
    factor = gs.splu(A, engine=engine)
    for use in (
        lambda: factor.solve(B),
        lambda: factor.refactor(A.data),
        lambda: factor.stats,
        lambda: factor.L,
        lambda: gs.splu(A, engine=engine),
    ):
        assert child(use).startswith(TOLD)
    assert np.allclose(A @ factor.solve(B), B)


def test_child_does_not_wait_for_the_lock_of_a_thread(device):
    factor = gs.splu(A, engine="supernodal")
    held, done = threading.Event(), threading.Event()

    def hold():
        with factor._core._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert child(lambda: factor.solve(B), 10).startswith(TOLD)
    finally:
        done.set()
        thread.join()


def test_auto_takes_the_processor_in_a_child(device, monkeypatch):
    gs.splu(A, engine="supernodal")
    monkeypatch.setattr("gpusplu.cuda.presence.no_device", lambda: "")
    monkeypatch.setattr("gpusplu.dispatch.request.automatic", Request)
    monkeypatch.setattr("gpusplu.dispatch.request.SMALLEST", 0)
    monkeypatch.setattr("gpusplu.dispatch.selection.LIKELY", 0)

    def use():
        factor = gs.splu(A)
        return factor.engine, "does not survive a fork" in factor.explain(), np.allclose(A @ factor.solve(B), B)

    assert child(use) == str(("cpu", True, True))
