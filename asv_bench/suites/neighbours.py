"""The CPU engine with all its threads and with one, alone and while others use the processors.

Situations (`variant`): alone; one busy process; one busy process per processor; a product by NumPy before each call,
whose BLAS threads then spin for a while; another thread of this process that multiplies matrices all the time; and one
processor for all threads. Mean seconds of a first factorization (`total`: splu or cholesky, analysis included), of a
refactorization and of a solve, alternating every tenth of the budget; the "peer" is gpusplu with one thread, and
`slowdown` the ratio to the better of the two.

Large factors (`--large`): 50 successive refactorizations without other processes, with the least and the median number
of processors that they used; the same refactorization with a busy process per processor, as for small factors; and the
time after the end of a busy process until as many processors are used as without one (`recovery`; the "peer" is one
refactorization). `others` and `steal` are processors that other processes and the hypervisor used meanwhile.
"""

import contextlib
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

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
#: Factors of some hundred milliseconds and more.
LARGE = ("elast:24x24x24", "elast:30x30x30", "poisson:40x40x40", "poisson:1000x1000", "rlc:300x300", "rlc:400x400")
PEERS, BUDGET = (), 1.0
CALLS = 50  # of large factors, one after the other
SAMPLE = 0.05  # seconds of calls after neighbours have ended
ALL_USED = 0.85  # part of the processors used without other processes that counts as all of them
ORDER = 300  # of the matrices that others multiply


def add_arguments(parser):
    parser.add_argument("--situations", nargs="*", choices=SITUATIONS, default=list(SITUATIONS))
    parser.add_argument("--large", nargs="*", default=list(LARGE), metavar="CASE", help="large factors")


@contextlib.contextmanager
def busy(count):
    """Processes that run an empty loop."""
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
    """For all current threads, and those that they start."""
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


def seconds_of_processors():
    """Processor seconds of this process, of all processes, and those that the hypervisor gave to others."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system, _, _, interrupts, soft_interrupts, steal = fields[:8]
    tick = os.sysconf("SC_CLK_TCK")
    return np.array(
        [own.ru_utime + own.ru_stime, (user + nice + system + interrupts + soft_interrupts) / tick, steal / tick]
    )


def processors_used(call):
    """Seconds of a call, and processors used meanwhile: by this process, by others, by the hypervisor."""
    before, begin = seconds_of_processors(), time.perf_counter()
    call()
    seconds = time.perf_counter() - begin
    own, all_, steal = (seconds_of_processors() - before) / seconds
    return seconds, own, max(0.0, all_ - own), steal


def calls(case):
    """The measured calls by phase."""
    A = load(case)
    factorize = gs.cholesky if is_definite(case) else gs.splu
    factor, b = factorize(A, engine="cpu"), np.random.default_rng(0).normal(size=A.shape[0])
    return {
        "total": lambda: factorize(A, engine="cpu", deterministic=True),
        "refactor": lambda: factor.refactor(A.data),
        "solve": lambda: factor.solve(b),
    }


def mean_seconds(call, before, threads, budget, turns=10):
    """Of `call` with each number of threads, in turns."""
    spent, count = dict.fromkeys(threads, 0.0), dict.fromkeys(threads, 0)
    for number in threads * turns:
        internals.set_num_threads(number)
        until = time.perf_counter() + budget / turns
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
    yield from measured(arguments, arguments.large, partial(of_large_case, all_threads))
    internals.set_num_threads(all_threads)


def of_case(situation, before, all_threads, budget, case):
    """A record of every phase."""
    for phase, call in calls(case).items():
        begin, wall = seconds_of_processors(), time.perf_counter()
        one, all_ = mean_seconds(call, before, [1, all_threads], budget)
        own, everybody, steal = (seconds_of_processors() - begin) / (time.perf_counter() - wall)
        more = {"threads": all_threads, "slowdown": all_ / min(one, all_), "others": everybody - own, "steal": steal}
        yield records.make(case, "cpu", phase, all_, "one thread", one, variant=situation, **more)


def of_large_case(all_threads, case):
    """How many processors refactorizations use alone, and how soon all after a busy process has ended."""
    refactor = calls(case)["refactor"]
    internals.set_num_threads(1)
    one = min(processors_used(refactor)[0] for _ in range(2))
    internals.set_num_threads(all_threads)
    refactor()
    seconds, own, others, steal = zip(*(processors_used(refactor) for _ in range(CALLS)), strict=True)
    job, used = statistics.median(seconds), statistics.median(own)
    more = {"threads": all_threads, "processors_least": min(own), "processors_median": used}
    taken = {"others": max(others), "steal": max(steal)}
    yield records.make(case, "cpu", "refactor", job, "one thread", one, variant="alone", **more, **taken)

    situation = "all processors busy"
    with SITUATIONS[situation]() as before:
        one, all_ = mean_seconds(refactor, before, [1, all_threads], 4 * job, turns=2)
    more = {"threads": all_threads, "slowdown": all_ / min(one, all_)}
    yield records.make(case, "cpu", "refactor", all_, "one thread", one, variant=situation, **more)

    with busy(1):
        until = time.perf_counter() + 1.0
        while time.perf_counter() < until:
            refactor()

    def some_calls():
        """Clocks of processors are too coarse for one short call."""
        begin = time.perf_counter()
        while True:
            refactor()
            if time.perf_counter() - begin > SAMPLE:
                break

    end, last = time.perf_counter(), 0.0  # when the last calls that did not use all began
    while (begin := time.perf_counter() - end) < max(1.0, 5 * job):
        _, own, others, steal = processors_used(some_calls)
        if own + others + steal < ALL_USED * used:
            last = begin
    more = {"threads": all_threads, "others": others, "steal": steal}
    yield records.make(case, "cpu", "recovery", last, "one job", job, variant="after a busy process", **more)
