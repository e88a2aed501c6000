"""The CPU engine with all its threads and with one, alone and beside others who want the processors.

Situations (`variant`): alone; one busy process; as many as there are processors; a product of NumPy's before each call,
whose threads of BLAS then spin for a while; another thread of this process that multiplies matrices all the time; and
one processor for all threads. Mean seconds of a first factorization (`total`: splu or cholesky, analysis included), of
a refactorization and of a solve, in turns of a tenth of the budget; the "peer" is ourselves with one thread.
"""

import contextlib
import os
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np

import gpusplu as gs

from .. import internals, records
from ..matrices import load
from ..options import measured
from .processor import is_definite

CASES = (
    *("memplus", "case_ACTIVSg10k_nrjac", "ibmpg1t_mna_tran"),
    *("poisson:14x14x14", "convdiff:16", "elast:10x10x10"),
)
PEERS, BUDGET = (), 1.0
ORDER = 300  # of the matrices that others multiply


def add_arguments(parser):
    parser.add_argument("--situations", nargs="*", choices=SITUATIONS, default=list(SITUATIONS))


@contextlib.contextmanager
def busy(count):
    """Processes that do nothing, all the time."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    time.sleep(0.3)
    try:
        yield lambda: None
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def products_before():
    M = np.random.default_rng(0).normal(size=(ORDER, ORDER))
    yield lambda: M @ M


@contextlib.contextmanager
def products_beside():
    M, over = np.random.default_rng(0).normal(size=(ORDER, ORDER)), threading.Event()

    def multiply():
        while not over.is_set():
            M @ M

    thread = threading.Thread(target=multiply)
    thread.start()
    try:
        yield lambda: None
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def one_processor():
    """For all threads that there are, and those that they start."""
    allowed = os.sched_getaffinity(0)
    keep_to({min(allowed)})
    try:
        yield lambda: None
    finally:
        keep_to(allowed)


def keep_to(processors):
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
            os.sched_setaffinity(int(thread), processors)


SITUATIONS = {
    "alone": lambda: contextlib.nullcontext(lambda: None),
    "one busy process": lambda: busy(1),
    "all processors busy": lambda: busy(len(os.sched_getaffinity(0))),
    "BLAS before": products_before,
    "BLAS beside": products_beside,
    "one processor": one_processor,
}


def calls(case):
    """What is measured, by phase."""
    A = load(case)
    factorize = gs.cholesky if is_definite(case) else gs.splu
    factor, b = factorize(A, engine="cpu"), np.random.default_rng(0).normal(size=A.shape[0])
    return {
        "total": lambda: factorize(A, engine="cpu", deterministic=True),
        "refactor": lambda: factor.refactor(A.data),
        "solve": lambda: factor.solve(b),
    }


def mean_seconds(call, before, threads, budget):
    """Of `call` with each number of threads, in turns."""
    spent, count = dict.fromkeys(threads, 0.0), dict.fromkeys(threads, 0)
    for number in threads * 10:
        internals.set_num_threads(number)
        until = time.perf_counter() + budget / 10
        while True:
            before()
            begin = time.perf_counter()
            call()
            end = time.perf_counter()
            spent[number] += end - begin
            count[number] += 1
            if end > until:
                break
    return [spent[number] / count[number] for number in threads]


def run(arguments):
    all_threads = internals.num_threads()
    for situation in arguments.situations:
        with SITUATIONS[situation]() as before:
            measure = partial(of_case, situation, before, all_threads, arguments.budget)
            yield from measured(arguments, arguments.cases, measure)
    internals.set_num_threads(all_threads)


def of_case(situation, before, all_threads, budget, case):
    """A record of every phase."""
    for phase, call in calls(case).items():
        one, all_ = mean_seconds(call, before, [1, all_threads], budget)
        yield records.make(case, "cpu", phase, all_, "one thread", one, variant=situation, threads=all_threads)
