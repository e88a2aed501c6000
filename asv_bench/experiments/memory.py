"""Peak resident memory of a factorization in its own process, relative to the bytes of factor and input.

The peak is the additional memory of a process that loads a matrix and calls splu (cholesky if the name starts with
`spd/`), relative to one that only imported gpusplu and loaded the matrix, plus the input: Linux's VmHWM, reset just
before the call.
"""

from pathlib import Path

import numpy as np

import gpusplu as gs

from .. import processes, records
from ..matrices import load
from ..options import note
from ..phases import attempt

CASES = (
    *("memplus", "bayer10", "ibmpg2t_mna_tran", "rlc:300x300", "convdiff:30"),
    *("spd/ibmpg2t_spd_tran", "spd/elast:20x20x20", "spd/poisson:40x40x40", "spd/G3_circuit"),
)
PEERS, BUDGET = (), 0.0
LIMIT = 120.0


def add_arguments(parser):
    parser.add_argument("--engine", default="cpu")


def resident(field):
    """A memory figure of this process [bytes]."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


def measure(case, engine):
    """Bytes of peak, factor and input, in this process."""
    A = load(case.removeprefix("spd/"))
    factorize = gs.cholesky if case.startswith("spd/") else gs.splu
    factorize(load("poisson:2"), engine=engine).solve(np.ones(2))  # starts threads and loads libraries
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM := VmRSS
    factor = factorize(A, engine=engine)
    factor.solve(np.ones(A.shape[0]))
    size = A.data.nbytes + A.indices.nbytes + A.indptr.nbytes
    peak = resident("VmHWM") - before + size
    return {"peak_bytes": peak, "factor_bytes": int(factor.stats["bytes"]), "input_bytes": size}


def child(arguments):
    for case in arguments.cases:
        processes.tell(arguments.engine, attempt(lambda case=case: measure(case, arguments.engine)))
        processes.tell("done", {})


def run(arguments):
    limits, engine = dict.fromkeys(arguments.cases, LIMIT), arguments.engine
    options = ["--engine", engine]
    for case, found, ended in processes.measure_cases("memory", options, limits, arguments.seconds, 0.0):
        result = found.get(engine, {"error": ended})
        if "error" in result:
            note(f"{case}: {result['error']}")
        else:
            yield records.make(case, engine, "memory", None, **result)
