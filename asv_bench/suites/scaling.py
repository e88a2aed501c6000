"""The CPU engine and its peers with 1, 2, 4, ... threads: phases of one system, and batches of small ones.

Each number of threads (`--threads`) is measured in a process of its own, because a BLAS reads it when it is loaded; the
peers have as many. First all threads, then one, then the others, so that what is lost when the time is over matters
least; a case that takes longer than `--limit` ends its process, and another one continues. Cases of `--ends` are
measured with all threads, and without peers with one. KLU and SuperLU, which have one thread, are measured once, beside
all threads of gpusplu and without `--ends`. Calls repeat for `--budget` seconds; one that takes more than a second is
made once. The least counts.

A case `64-of-NAME` is a batch of 64 systems, whose peer is a loop of refactorizations, or solves, of one factor.
`others` and `steal` are processors that other processes and the hypervisor used meanwhile.
"""

import argparse
import os
import re
import time

import numpy as np

import gpusplu as gs

from .. import internals, peers, processes
from ..matrices import load
from ..options import child_options, note, numbers, present
from ..phases import Problem, attempt
from ..timing import BriefClock
from .batches import Systems
from .neighbours import seconds_of_processors
from .processor import begin, is_definite, records_of, solvers

CASES = (
    *("memplus", "case_ACTIVSg10k_nrjac", "bayer10", "ibmpg1t_mna_tran", "rlc:100x100", "convdiff:25", "rlc:200x200"),
    *("poisson:40x40x40", "elast:20x20x20", "poisson:500x500", "ibmpg2t_mna_tran"),
)
#: Cheap and expensive ones, which are measured with one and with all threads only.
ENDS = (
    *("256-of-add20", "64-of-case3375wp_nrjac", "256-of-rlc:20x20", "256-of-poisson:30x30", "64-of-elast:5x5x5"),
    *("rlc:400x400", "poisson:1000x1000", "poisson:60x60x60", "elast:30x30x30"),
)
PEERS, BUDGET = ("cktso", "pardiso", "klu", "cholmod"), 0.05
PHASES = ("analyze", "factor", "total", "refactor", "solve")
BATCH = re.compile(r"(\d+)-of-(.+)")
AGAIN = 0.3  # seconds that analysis and first factorization are repeated
START = 30.0  # seconds that a process has to begin
SPIN, PAUSE = 20, 0.05  # milliseconds that threads of OpenMP spin after a call, and a longer pause [s]


def add_arguments(parser):
    parser.add_argument("--threads", type=numbers, help="numbers joined by commas, in the order of measurement")
    parser.add_argument("--ends", nargs="*", default=list(ENDS), metavar="CASE", help="with one and all threads only")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that a case may take")


def in_order(most):
    """All threads, one, and the powers of two between them, falling."""
    return list(dict.fromkeys([most, 1, *(2**k for k in reversed(range(1, most.bit_length())) if 2**k < most)]))


def run(arguments):
    end = time.perf_counter() + arguments.seconds
    everyone = present(arguments)
    parallel = [name for name in everyone if peers.named(name).parallel]
    counts = arguments.threads or in_order(internals.num_threads())
    for threads in counts:
        parts = [(arguments.cases, everyone if threads == max(counts) else parallel)]
        if threads in (1, max(counts)):
            parts.append((arguments.ends, parallel if threads == max(counts) else []))
        for cases, others in parts:
            options = child_options(argparse.Namespace(**vars(arguments) | {"peer": others}))
            options += ["--threads", str(threads)]
            limits = dict.fromkeys(cases, arguments.limit)
            seconds = end - time.perf_counter()
            for case, results, ended in processes.measure_cases("scaling", options, limits, seconds, START):
                note(f"{threads} threads: {case}: {ended or 'measured'}")
                more = results.pop("machine", {}) | ({"kind": "batch"} if BATCH.fullmatch(case) else {})
                yield from records_of(case, results, PHASES, threads=threads, **more)


def child(arguments):
    """Measure cases with one number of threads; a line a solver as soon as it is known."""
    os.environ["KMP_BLOCKTIME"] = str(SPIN)
    begin(*arguments.threads, arguments.peer)
    for case in arguments.cases:
        before, start = seconds_of_processors(), time.perf_counter()
        failed = attempt(lambda case=case: [processes.tell(*found) for found in measured(case, arguments)])
        if "error" in failed:
            processes.tell("ours", failed)
        own, all_, steal = (seconds_of_processors() - before) / (time.perf_counter() - start)
        processes.tell("machine", {"others": max(0.0, all_ - own), "steal": steal})
        processes.tell("done", {})


def measured(case, arguments):
    """Names of solvers and what they take."""
    clock = BriefClock(arguments.budget)
    if batch := BATCH.fullmatch(case):
        return of_batch(int(batch[1]), batch[2], clock)
    problem = Problem(load(case), is_definite(case), clock, again=AGAIN, brief=True)
    return solvers(problem, arguments.peer, PAUSE)


def of_batch(count, case, clock):
    """Seconds of all systems, as a batch and one after the other."""
    A, definite = load(case), is_definite(case)
    systems = Systems(A, count, clock)
    values, b = systems.values(), systems.b
    batch = (gs.cholesky_batch if definite else gs.splu_batch)(A, values, engine="cpu")
    found = {"refactor": clock.least(lambda: batch.refactor(values)), "solve": clock.least(lambda: batch.solve(b))}
    found |= {"backward_error": systems.error(batch.solve(b)), "flops": float(batch.symbolic.flops)}
    yield "ours", found | {"n": A.shape[0], "nnz": A.nnz}
    factor = (gs.cholesky if definite else gs.splu)(A, engine="cpu")
    loop = {"refactor": clock.least(lambda: [factor.refactor(one) for one in values])}
    x = np.stack([factor.refactor(one) or factor.solve(right) for one, right in zip(values, b, strict=True)])
    loop["solve"] = clock.least(lambda: [factor.solve(one) for one in b])
    yield "loop", loop | {"backward_error": systems.error(x)}
