"""Pools of processes beside threads that are in the core, and what happens where the interpreter ends."""

import numpy as np
import pytest

from support.processes import run


@pytest.mark.parametrize(
    "way", ["fork", *(pytest.param(way, marks=pytest.mark.thorough) for way in ("spawn", "forkserver"))]
)
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
        from gpusplu.cuda.waiting import wait_interruptibly
        from gpusplu.engines.device.interrupted import Interrupted


        class Device:
            def synchronize(self):
                wait_interruptibly(lambda: print("waited"))


        class Factor:
            def __init__(self, device):
                self.unfinished = Interrupted([device])

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


WORK = """
import threading, time
import numpy as np, gpusplu as gs
from gpusplu import _core

A, b = gs.gallery.poisson(60, 60), np.ones(3600)
values = np.tile(A.data, (3, 1))
lu, batch = gs.splu(A, engine="cpu"), gs.splu_batch(A, values, engine="cpu")


def analyze():
    gs.cache_clear()
    gs.analyze(A, engine="cpu")


calls = [
    lambda: lu.solve(b), lambda: gs.splu(A, engine="cpu"), lambda: batch.refactor(values), analyze,
    lambda: gs.spsolve(A, b), lambda: gs.cholesky(A, engine="cpu").refactor(A.data),
]
begun = threading.Barrier(len(calls) + 1)


def loop(call):
    if watched:
        _core.watch(lambda *_: sum(range(1000)), 1e-4)
    call()
    begun.wait()
    while True:
        call()


for call in calls:
    threading.Thread(target=loop, args=[call], daemon=True).start()
begun.wait()
time.sleep(0.02)
"""


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("watched", [False, True])
def test_the_interpreter_ends_while_daemon_threads_are_in_the_core(threads, watched):
    """They never get its lock again, and before Python 3.14 it ends them where they ask for it."""
    run(f"watched = {watched}" + WORK, GPUSPLU_NUM_THREADS=threads)


@pytest.mark.parametrize("where", ["a global", "a module", "a class", "a cache", "a cycle", "a thread", "gpusplu"])
@pytest.mark.parametrize(
    "used", [pytest.param(False, id="first use"), pytest.param(True, id="used before", marks=pytest.mark.thorough)]
)
def test_a_factor_solves_where_the_interpreter_ends(where, used):
    keep = {
        "a global": "",
        "a module": "import types; sys.modules['mine'] = types.ModuleType('mine'); sys.modules['mine'].kept = holder",
        "a class": "class Mine: kept = holder",
        "a cache": "cached = functools.cache(lambda: holder); cached()",
        "a cycle": "holder.itself = holder",
        "a thread": "local = threading.local(); local.kept = holder",
        "gpusplu": "gs.linalg.kept = holder",
    }[where]
    answer = run(
        f"""
        import functools, sys, threading
        import numpy as np, gpusplu as gs


        class Holder:
            def __init__(self, A):
                self.b, self.values, self.lu = A @ np.ones(400), 2 * A.data, gs.splu(A)

            def __del__(self):
                print(float(self.lu.solve(self.b)[7]), float(self.lu.solve(self.b, "T")[7]))
                self.lu.refactor(self.values)
                print(float(self.lu.solve(self.b)[7]), flush=True)


        holder = Holder(gs.gallery.poisson(20, 20))
        if {used}:
            holder.lu.solve(holder.b)
        {keep}
        {"" if where == "a global" else "del holder"}
        """
    )
    np.testing.assert_allclose([float(word) for word in answer.split()], [1, 1, 0.5])
