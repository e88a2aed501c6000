"""Threads of large and small factors: alone, beside busy processes and after these have gone.
usage: threads.py [--seconds S] [--busy N...] [--large CASE...] [--small CASE...]   (a case ends in @spd for cholesky)

alone:  of successive refactorizations of each large case the processors used (ours / wall): least, median, first calls.
beside: mean seconds of calls with all threads and with one, in turns; ratio to the better of the two.
after:  calls after the neighbours were stopped: when each began [ms after], how long it took, processors.
Calls during which others or the hypervisor took more than LIMIT processors are counted apart (others, steal).
Engines have no switch that turns decisions off: jobs of 20 ms and more have none (base/job_kind.hpp).
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import _core

HZ = os.sysconf("SC_CLK_TCK")
LARGE = [
    "elast:24x24x24@spd",
    "elast:30x30x30@spd",
    "poisson:40x40x40@spd",
    "poisson:1000x1000@spd",
    "rlc:300x300",
    "rlc:400x400",
]
SMALL = ["poisson:14x14x14@spd", "convdiff:16", "elast:10x10x10@spd", "rlc:60x60", "poisson:200x200"]
out = Path(os.environ["OUT"], "threads.jsonl").open("w") if os.environ.get("OUT") else None  # noqa: SIM115


def say(text, **record):
    print(text, flush=True)
    if out:
        out.write(json.dumps(record) + "\n")
        out.flush()


def stat():
    v = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (v[0] + v[1] + v[2] + v[5] + v[6]) / HZ, v[7] / HZ


def timed(call):
    """Seconds, our processors, those of others, steal."""
    k0, u, s = stat(), resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    call()
    t = time.perf_counter() - s
    w, k1 = resource.getrusage(resource.RUSAGE_SELF), stat()
    own = w.ru_utime - u.ru_utime + w.ru_stime - u.ru_stime
    return t, own / t, max(0.0, k1[0] - k0[0] - own) / t, (k1[1] - k0[1]) / t


def make(case):
    name = case.removesuffix("@spd")
    A = sp.csc_matrix(gs.gallery.named(name)).astype(float)
    A.sort_indices()
    return A, (gs.cholesky if case.endswith("@spd") else gs.splu)(A, engine="cpu")


class Busy:
    def __init__(self, count):
        self.count = count

    def __enter__(self):
        self.all = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(self.count)]
        time.sleep(0.3)
        return self

    def stop(self):
        for p in self.all:
            p.kill()
        for p in self.all:
            p.wait()
        self.all = []

    def __exit__(self, *_):
        self.stop()


def means(call, seconds, all_threads, turns=4):
    spent, count = {1: 0.0, all_threads: 0.0}, {1: 0, all_threads: 0}
    for k in [1, all_threads] * turns:
        _core.set_num_threads(k)
        until = time.perf_counter() + seconds / (2 * turns)
        while True:
            s = time.perf_counter()
            call()
            e = time.perf_counter()
            spent[k] += e - s
            count[k] += 1
            if e > until:
                break
    _core.set_num_threads(all_threads)
    return spent[1] / count[1], spent[all_threads] / count[all_threads], count[all_threads]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=2.5)
    p.add_argument("--calls", type=int, default=50)
    p.add_argument("--most", type=float, default=10.0, help="seconds for the calls of one case")
    p.add_argument("--busy", type=int, nargs="*", default=None)
    p.add_argument("--large", nargs="*", default=LARGE)
    p.add_argument("--small", nargs="*", default=SMALL)
    a = p.parse_args()
    threads = _core.num_threads()
    busy = a.busy if a.busy is not None else sorted({1, 4, threads})
    say(f"{threads} threads, gpusplu {gs.__version__}", threads=threads)
    large = {}
    for case in a.large:
        A, f = make(case)
        large[case] = A, f
        f.refactor(A.data)
        rows, begin = [], time.perf_counter()
        while len(rows) < a.calls and (time.perf_counter() - begin < a.most or len(rows) < 10):
            rows.append(timed(lambda: f.refactor(A.data)))  # noqa: B023
        own = [r[1] for r in rows]
        quiet = [r[1] for r in rows if r[2] < 0.15 and r[3] < 0.1 * threads] or [float("nan")]
        say(
            f"alone  {case:24} {len(rows)} calls, median {1e3 * statistics.median(r[0] for r in rows):.0f} ms "
            f"(most {1e3 * max(r[0] for r in rows):.0f}), processors: least {min(own):.2f}, median "
            f"{statistics.median(own):.2f}; {len(quiet)} undisturbed calls: least {min(quiet):.2f}; others up to "
            f"{max(r[2] for r in rows):.2f}, steal up to {max(r[3] for r in rows):.2f}",
            kind="alone",
            case=case,
            rows=rows,
        )
    small = {case: make(case) for case in a.small}
    for count in [0, *busy]:
        with Busy(count):
            for case, (A, f) in {**small, **large}.items():
                b = np.ones(A.shape[0])
                calls = {"refactor": lambda: f.refactor(A.data), "solve": lambda: f.solve(b)}  # noqa: B023
                if case in small:
                    mk = gs.cholesky if case.endswith("@spd") else gs.splu
                    calls["first"] = lambda: mk(A, engine="cpu", deterministic=True)  # noqa: B023
                for phase, call in calls.items():
                    if count == 0 and case in large:
                        continue
                    one, all_, n = means(call, a.seconds if phase == "refactor" else a.seconds / 3, threads)
                    say(
                        f"beside {count:2} {case:24} {phase:8} one thread {1e3 * one:9.3f} ms, "
                        f"all {1e3 * all_:9.3f} ms, "
                        f"all / best {all_ / min(one, all_):.2f}  ({n} calls)",
                        kind="beside",
                        busy=count,
                        case=case,
                        phase=phase,
                        one=one,
                        all=all_,
                    )
    for count in busy:
        for case in a.large[-2:] + a.small[:2]:
            A, f = large.get(case) or small[case]
            with Busy(count) as neighbours:
                until = time.perf_counter() + 1.0
                while time.perf_counter() < until:
                    f.refactor(A.data)
                neighbours.stop()
                begin, rows = time.perf_counter(), []
                while time.perf_counter() - begin < 1.0 and len(rows) < 400:
                    at = time.perf_counter() - begin
                    rows.append((at, *timed(lambda: f.refactor(A.data))))  # noqa: B023
            shown = rows[:6] + rows[6 :: max(1, len(rows) // 6)]
            say(
                f"after  {count:2} {case:24} "
                + "; ".join(f"{1e3 * r[0]:.0f}: {1e3 * r[1]:.1f} ms {r[2]:.2f}" for r in shown),
                kind="after",
                busy=count,
                case=case,
                rows=rows,
            )


main()
