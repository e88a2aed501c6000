"""What ranks do for the tests: python on_ranks.py FOLDER CHECK..., started by mpiexec.

A check reads matrices from the folder, where the process of the tests has put them, and leaves there what that
compares. It needs no compiled core, so that the Python that has petsc4py may be another one than that of the tests.
"""

import json
import os
import resource
import signal
import sys
import traceback
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from mpi4py import MPI
from scipy.linalg import hilbert

import gpusplu.distributed as gd

COMM = MPI.COMM_WORLD
FOLDER = Path(sys.argv[1])


def load(name):
    return sp.csr_array(sp.load_npz(FOLDER / f"{name}.npz"))


def cuts(n, without=()):
    """First rows of the ranks, as even as can be, but for those that have none."""
    with_rows = [rank for rank in range(COMM.size) if rank not in without]
    counts = np.zeros(COMM.size, dtype=int)
    counts[with_rows] = np.diff(np.linspace(0, n, len(with_rows) + 1).astype(int))
    return np.concatenate(([0], np.cumsum(counts)))


def part(A, without=()):
    """The rows of this rank."""
    cut = cuts(A.shape[0], without)
    return sp.csr_array(A[cut[COMM.rank] : cut[COMM.rank + 1]])


def on_root(array):
    return array if COMM.rank == 0 else None


def whole(x):
    """Parts of all ranks, put together on the root."""
    parts = COMM.gather(x)
    return None if parts is None else np.concatenate(parts)


def keep(name, **arrays):
    if COMM.rank == 0:
        np.savez(FOLDER / f"{name}.{COMM.size}.npz", **arrays)


def tell(name, what):
    if COMM.rank == 0:
        (FOLDER / f"{name}.{COMM.size}.json").write_text(json.dumps(what))


def right_hand_sides(n):
    return np.random.default_rng(n).standard_normal((n, 3))


def solved(lu, b):
    """Solutions for right-hand sides on the root and distributed, real and complex, in all directions."""
    first, end = lu.rows
    found = {trans: lu.solve(on_root(b), trans, root=0) for trans in "NTH"}
    found["one"] = lu.solve(on_root(b[:, 0]), root=COMM.size - 1 if COMM.size == 1 else 0)
    found["spread"] = whole(lu.solve(b[first:end]))
    found["complex"] = whole(lu.solve(b[first:end, 0] + 1j * b[first:end, 1], "T"))
    assert lu.backward_error < 1e-15
    return {name: x for name, x in found.items() if x is not None}


def check_lu(engine):
    A = load("general")
    P, b = part(A), right_hand_sides(A.shape[0])
    with gd.splu(P, COMM, engine=engine) as lu:
        first = solved(lu, b)
        lu.refactor(P.data * np.cos(P.indices))
        again = solved(lu, b)
        shuffled = sp.csr_array(P * 2.0)
        order = np.lexsort((-shuffled.indices, np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))))
        shuffled = sp.csr_array((shuffled.data[order], shuffled.indices[order], P.indptr), shape=P.shape)
        lu.refactor(shuffled)
        doubled = lu.solve(on_root(b), root=0)
        figures = {"slogdet": list(map(float, lu.slogdet()))} if engine == "mumps" else {}
        tell(f"figures_{engine}", {"stats": list(lu.stats), "text": lu.explain(), "repr": repr(lu), **figures})
        after = {f"{name}_again": x for name, x in again.items()}
        keep(f"lu_{engine}", doubled=on_root(doubled), **first, **after)


def check_mumps():
    check_lu("mumps")


def check_superlu_dist():
    check_lu("superlu_dist")


def check_cholesky():
    """From one triangle, with wide indices."""
    A = sp.csr_array(sp.tril(load("definite")))
    P, b = part(A), right_hand_sides(A.shape[0])
    P = sp.csr_array((P.data, P.indices.astype(np.int64), P.indptr.astype(np.int64)), shape=P.shape)
    with gd.cholesky(P, COMM) as ch:
        tell("cholesky", ch.logdet())
        keep("cholesky", **solved(ch, b))


def check_ldlt():
    A = load("indefinite")
    with gd.ldlt(part(A), COMM) as factor:
        tell("ldlt", {"inertia": factor.inertia(), "doubt": factor.inertia_doubt, "slogdet": factor.slogdet()[1]})
        keep("ldlt", **solved(factor, right_hand_sides(A.shape[0])))
    with gd.ldlt(part(sp.csr_array(hilbert(20))), COMM) as factor:
        tell("nearly_singular", {"inertia": factor.inertia(), "doubt": factor.inertia_doubt})


def check_zero_rows():
    A = load("general")
    b, found = right_hand_sides(A.shape[0]), {}
    for without in ((), (0,), (COMM.size - 1,)):
        if COMM.size > len(without):
            lu = gd.splu(part(A, without), COMM)
            found[f"without{len(found)}"] = on_root(lu.solve(on_root(b), root=0))
            lu.solve(np.ones(lu.rows[1] - lu.rows[0]) + 1j)
            refused("rows", lambda without=without: gd.splu(part(A, without), COMM, engine="superlu_dist"))
    keep("zero_rows", **{name: x for name, x in found.items() if x is not None})


def refused(name, call):
    """Leave what a call raised, which has to be the same on all ranks."""
    try:
        call()
        raised = None
    except Exception as error:
        raised = [type(error).__name__, str(error)]
    everywhere = COMM.allgather(raised)
    assert all(one == raised for one in everywhere), everywhere
    REFUSED.setdefault(name, []).append(raised)


REFUSED = {}


def check_refusals():
    A = load("general")
    P, n = part(A), A.shape[0]
    last, mine = COMM.size - 1, COMM.rank == COMM.size - 1
    nan, outside = P.copy(), P.copy()
    if mine:
        nan.data[3] = np.nan
        outside.indices = outside.indices.copy()
        outside.indices[0] = n + 5
    lu = gd.splu(P, COMM)
    b = np.ones(P.shape[0])
    calls = {
        "engine": lambda: gd.splu(P, COMM, engine="pardiso"),
        "memory": lambda: gd.splu(P, COMM, memory=0),
        "communicator": lambda: gd.splu(P, None),
        "not a matrix": lambda: gd.splu("A" if mine else P, COMM),
        "vector": lambda: gd.splu(sp.coo_array(np.ones(n)), COMM),
        "wide numbers": lambda: gd.splu(P.astype(np.longdouble), COMM),
        "determinant": lambda: gd.splu(P, COMM, engine="superlu_dist").slogdet(),
        "not square": lambda: gd.splu(P[:-1], COMM),
        "not finite": lambda: gd.splu(nan, COMM),
        "outside": lambda: gd.splu(outside, COMM),
        "wide": lambda: gd.splu(sp.csr_array((P.shape[0], 2**31)), COMM),
        "complex": lambda: gd.splu(P * 1j, COMM),
        "too little": lambda: gd.splu(part(load("large")), COMM, memory=1_000_000),
        "differ": lambda: gd.splu(P, COMM, memory=10**9 + COMM.rank),
        "other calls": lambda: gd.ldlt(P, COMM) if mine else gd.cholesky(P, COMM),
        "not symmetric": lambda: gd.ldlt(P, COMM),
        "not definite": lambda: gd.cholesky(part(load("indefinite")), COMM),
        "values": lambda: lu.refactor(np.ones(3) if mine else P.data),
        "pattern": lambda: lu.refactor(sp.csr_array(P.shape) if mine else P),
        "columns": lambda: lu.refactor(sp.csr_array((P.data, P.indices[::-1], P.indptr), shape=P.shape)),
        "not finite values": lambda: lu.refactor(nan.data),
        "lossy": lambda: lu.refactor(P.data * 1j),
        "rows of b": lambda: lu.solve(b[:-1] if mine else b),
        "root of b": lambda: lu.solve(np.ones(3), root=last),
        "no root": lambda: lu.solve(b, root=COMM.size),
        "trans": lambda: lu.solve(b, "X"),
        "kinds of b": lambda: lu.solve(b * 1j if mine else b),
    }
    for name, call in calls.items():
        refused(name, call)
    keep("refusals", x=np.zeros(0) if COMM.rank else lu.solve(on_root(np.ones(n)), root=0)) if COMM.size == 1 else None
    lu.close()
    refused("closed", lambda: lu.solve(b))


def check_singular():
    """What was factored before a refactorization failed is still there."""
    A = load("general")
    P, ones, found = part(A), np.ones(A.shape[0]), {}
    singular = P.copy()
    if COMM.rank == 0:
        singular.data[: P.indptr[1]] = 0
    for engine in ("mumps", "superlu_dist"):
        lu = gd.splu(P, COMM, engine=engine)
        refused("singular", lambda lu=lu: lu.refactor(singular.data))
        found[engine] = lu.solve(on_root(ones), root=0)
        refused("singular", lambda engine=engine: gd.splu(singular, COMM, engine=engine))
        lu.refactor(P.data)
        lu.solve(np.ones(P.shape[0]))
    refused("fixed pivots", lambda: gd.splu(part(load("pairs")), COMM, engine="superlu_dist"))
    with gd.splu(part(load("pairs")), COMM) as lu:
        found["pairs"] = lu.solve(on_root(np.ones(lu.shape[0])), root=0)
    ch = gd.cholesky(part(load("definite")), COMM)
    first, end = ch.rows
    refused("not definite any more", lambda: ch.refactor(-part(load("definite")).data))
    found["definite"] = whole(ch(np.ones(end - first)))
    keep("singular", **{name: x for name, x in found.items() if x is not None})


def resident():
    """Memory of this process [KiB]."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def grown(work, times, settled):
    """What memory has grown by, from the time when `settled` calls were made, on the rank where that is most [KiB]."""
    for _ in range(settled):
        work()
    before = resident()
    for _ in range(times):
        work()
    return max(COMM.allgather(resident() - before))


def check_growth():
    """Of a hundred refactorizations, and of factors that are dropped; small ones where ranks share processors."""
    A = load("large" if COMM.size <= 2 else "general")
    P = part(A)
    b = np.ones(P.shape[0])
    found = {}
    for engine in ("mumps", "superlu_dist"):
        lu = gd.splu(P, COMM, engine=engine)

        def step(lu=lu):
            lu.refactor(P.data)
            lu.solve(b)

        found[f"refactor {engine}"] = grown(step, 100, 10)

        def make(engine=engine):
            gd.splu(P, COMM, engine=engine).solve(b)

        found[f"dropped {engine}"] = grown(make, 20, 10)
    tell("growth", found)


def check_starved():
    """Memory that the system does not give."""
    small, P = part(load("general")), part(load("larger"))
    lu = gd.splu(small, COMM)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + 64 * 2**20,) * 2)
    refused("starved", lambda: gd.splu(P, COMM))
    lu.refactor(small.data)
    lu.solve(np.ones(small.shape[0]))


def check_killed():
    """One rank ends in the middle of a loop without a word; the others leave who they are."""
    P = part(load("large"))
    lu = gd.splu(P, COMM)
    (FOLDER / f"process.{COMM.rank}").write_text(str(os.getpid()))
    COMM.barrier()
    for step in range(10_000):
        if step == 5 and COMM.rank == COMM.size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        lu.refactor(P.data)


def main():
    for name in sys.argv[2:]:
        try:
            globals()[f"check_{name}"]()
        except BaseException:
            traceback.print_exc()
            print(f"in {name} on rank {COMM.rank}", file=sys.stderr, flush=True)
            COMM.Abort(1)
        tell(f"done_{name}", True)
    tell(f"{sys.argv[2]}_refused", REFUSED)


if __name__ == "__main__":
    main()
