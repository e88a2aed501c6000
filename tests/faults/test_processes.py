"""Pools of processes beside threads that are in the core, by each of Python's ways to start one."""

import pytest

from faults.program import run


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_pool_of_processes(way):
    run(
        "import multiprocessing, sys\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from faults.forking import ELASTIC, busy, solves\n"
        f"context = multiprocessing.get_context({way!r})\n"
        "with busy(solves), ProcessPoolExecutor(4, mp_context=context) as pool:\n"
        "    assert all(pool.map(solves, [ELASTIC] * 12, timeout=100))",
        GPUSPLU_NUM_THREADS="4",
    )


def test_patterns_are_dropped_before_the_interpreter_ends():
    """Devices that analyses may be on are still there."""
    answer = run(
        "import atexit\n"
        "atexit.register(lambda: print(gs.cache_info().currsize))\n"
        "import numpy as np, gpusplu as gs\n"
        "from gpusplu import gallery\n"
        "A = gallery.named('poisson:10x10')\n"
        "for _ in range(3): gs.spsolve(A, np.ones(100))\n"
        "print(gs.cache_info().currsize)\n"
    )
    assert answer.split() == ["1", "0"]


@pytest.mark.parametrize("before", ["", "device.synchronize()"], ids=["first wait", "waited before"])
def test_what_a_call_left_on_a_device_is_waited_for_where_the_interpreter_ends(before):
    """Python before 3.12 waits for ever for a thread that begins then, and threads that are there run no more."""
    answer = run(
        f"""
        from gpusplu.cuda.waiting import wait_beside
        from gpusplu.engines.device.unfinished import Unfinished


        class Device:
            def synchronize(self):
                wait_beside(lambda: print("waited"))


        class Factor:
            def __init__(self, device):
                self.unfinished = Unfinished([device])

            def __del__(self):
                self.unfinished.keep(self)


        device = Device()
        {before}
        factor = Factor(device)
        try:
            with factor.unfinished:
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
        """,
        timeout=60,
    )
    assert answer == "waited\n" * (2 if before else 1)
