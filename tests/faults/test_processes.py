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
