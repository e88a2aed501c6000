"""Children forked while a thread uses a device: requests for it raise, `auto` takes the processor."""

import numpy as np
import pytest

import gpusplu as gs
from faults.forking import busy, child
from gpusplu import gallery

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")]
ENGINES = ("supernodal", "glu", "sflu", "crisscross")
TOLD = "EngineUnavailableError: this process was forked from one that uses CUDA"


def test_children_of_a_busy_process(cupy):
    A = gallery.rlc_mesh(40, 40)
    b = np.ones(A.shape[0])
    factors = {engine: gs.splu(A, engine=engine) for engine in ENGINES}

    def step():
        factors["supernodal"].refactor(A.data)
        factors["supernodal"].solve(b)

    def anew():
        lu = gs.splu(A, expected_refactors=100_000)
        return lu.engine, bool(abs(A @ lu.solve(b) - b).max() < 1e-8)

    with busy(step, threads=1):
        for _ in range(5):
            for factor in factors.values():
                assert child(lambda: factor.solve(b)).startswith(TOLD)  # noqa: B023
            assert child(anew) == "('cpu', True)"
    for factor in factors.values():
        assert abs(A @ factor.solve(b) - b).max() < 1e-8
