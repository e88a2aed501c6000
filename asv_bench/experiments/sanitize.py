"""Small cases of every kind for compute-sanitizer; no times.

    compute-sanitizer --tool memcheck python -m asv_bench run sanitize
    compute-sanitizer --tool racecheck python -m asv_bench run sanitize --apart

Factors, refactors and solves in each number type on the device, and checks the backward errors: the supernodal engine
by LU, Cholesky and LDL^T, with enough memory and streaming (`streaming`), in mixed precision, and each mode of the
column engines; determinants and condition numbers; a batch without waiting; Schur complements. CuPy's memory pool is
disabled, so that an access beyond an array is an access beyond an allocation. The matrices are just large enough for
fronts of every class.

Warps that process a group of columns pass values to each other through shared memory by acquire and release of flags,
or by words with a tag. Racecheck knows only barriers and reports each of these exchanges. --apart gives every column a
group of its own, so that barriers order all accesses. The emulator tests groups with any order of their warps, and
tests/gpu compares their bits on the device.
"""

from contextlib import nullcontext
from functools import partial

import numpy as np
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery

from .. import internals, records
from ..options import device_clock, names, note
from ..phases import on_host
from ..timing import backward_error

FRONTS = ("rlc:16x16", "convdiff:11", "poisson:9x9x9", "elast:5x5x5")
INDEFINITE = ("kkt:400x150x4", "stokes:6x6x6", "helmholtz:25x25")
STREAMED = "poisson:24x24x24"
COLUMNS = "rlc:16x16"
BORDERED = f"{COLUMNS} with a border"
CASES = (*FRONTS, *INDEFINITE, STREAMED, BORDERED)
PEERS, BUDGET = (), 0.0
ENGINES = ["supernodal", "glu", "sflu", "crisscross"]
CORNER = 100
COLUMNS_OF_B = 3
SYSTEMS = 35  # more than a warp takes
INTERFACES = {"rlc:16x16": {}, "elast:5x5x5": {"cholesky": True}, "kkt:400x150x4": {"ldlt": True}}
INTERFACE = 70  # more than a tile


def add_arguments(parser):
    parser.add_argument("--scalars", default="fdFD", help="letters of f, d, F, D")
    parser.add_argument("--engines", type=names, default=ENGINES, help="names joined by commas")
    parser.add_argument("--apart", action="store_true", help="columns one by one, not in groups")


def bordered():
    """COLUMNS with one more row and column that touch all others: a long column of sflu."""
    A = gallery.named(COLUMNS)
    border = sp.csc_array(1e-3 * np.cos(np.arange(A.shape[0])[:, None]))
    return sp.csc_array(sp.block_array([[A, border], [border.T, sp.csc_array([[1.0]])]]))


def turned(A, scalar):
    """The matrix in this number type; a complex one if it is complex."""
    A = A.astype(scalar)
    if A.dtype.kind == "c":
        turn = np.exp(1j * np.arange(A.shape[0])).astype(scalar)
        A = sp.csc_array(sp.diags_array(turn) @ A @ sp.diags_array(turn.conj()))
    return A


def ways(engine):
    """How an engine of columns is tuned to go each of its ways, by name."""
    if engine == "crisscross":
        division = gallery.named(COLUMNS).shape[0] - CORNER
        return {f"from column {division}": {"division": division}}
    if engine == "glu":
        return {"": {}, **{mode: {"mode": mode} for mode in internals.GLU_MODES}}
    return {"": {}, "by levels": {"by_levels": True}}


def kinds(engine, scalar, tuning):
    """Case, name of what is run, matrix, context and function that factors it; `tuning`: of all engines of columns."""
    if engine == "supernodal":
        for case in FRONTS:
            factorize = gs.cholesky if case.startswith(("poisson", "elast")) else gs.splu
            A = turned(gallery.named(case), scalar)
            yield case, "", A, nullcontext, lambda A, f=factorize: f(A, engine="supernodal")
            if scalar in "dD":
                mixed = partial(factorize, engine="supernodal", precision="mixed")
                yield case, "mixed", A, nullcontext, mixed
        for case in INDEFINITE:
            A = turned(gallery.named(case), scalar)
            yield case, "ldlt", A, nullcontext, lambda A: gs.ldlt(A, engine="supernodal")
        if scalar == "d":
            yield STREAMED, "streaming", gallery.named(STREAMED), nullcontext, streaming
        return
    for way, chosen in ways(engine).items():
        context = partial(internals.tuned, engine, **chosen, **tuning)
        yield COLUMNS, way, turned(gallery.named(COLUMNS), scalar), context, lambda A: gs.splu(A, engine=engine)
    if engine == "sflu":
        yield BORDERED, "", turned(bordered(), scalar), partial(internals.tuned, engine, **tuning), with_long_column


def streaming(A):
    """A Cholesky factor with hardly more memory than the least that it can do with."""
    symbolic = gs.analyze(A, cholesky=True, engine="supernodal")
    memory = int(1.05 * internals.least_bytes(symbolic, COLUMNS_OF_B))
    factor = gs.cholesky(A, engine="supernodal", device_memory=memory)
    assert factor.stats.n_windows > 1
    return factor


def with_long_column(A):
    factor = gs.splu(A, engine="sflu")
    assert internals.long_columns(factor).size == 1
    return factor


def check(A, factor, clock, limit):
    """Refactor and solve; the largest backward error, AssertionError where one is beyond the limit."""
    factor.refactor(clock.put(A.data))
    b = np.asfortranarray(np.random.default_rng(0).normal(size=(A.shape[0], COLUMNS_OF_B)).astype(A.dtype))
    worst = 0.0
    for columns in (b[:, :1], b):
        for trans, M in (("N", A), ("T", A.T), ("H", A.conj().T)):
            error = backward_error(M, on_host(factor.solve(clock.put(columns), trans)), columns)
            assert error < limit, f"{trans}: backward error {error:.1e}"
            worst = max(worst, error)
    factor.refactor_solve(clock.put(A.data), clock.put(b[:, 0]))
    assert np.isfinite(factor.slogdet()[1])
    assert 0 < factor.rcond() <= 1
    return worst


def check_batch(case, scalar, clock, limit):
    """The largest backward error of three systems, factored and solved together and not waited for."""
    A = turned(gallery.named(case), scalar)
    rng, put = np.random.default_rng(0), clock.put
    values = A.data * rng.uniform(0.9, 1.1, (SYSTEMS, 1)).astype(A.dtype)
    b = rng.normal(size=(SYSTEMS, A.shape[0])).astype(A.dtype)
    batch = gs.splu_batch(A, put(values), engine="supernodal")
    x = on_host(batch.refactor_solve(put(values), put(b), check="later"))
    batch.check()
    assert np.isfinite(batch.slogdet()[1]).all()
    systems = [sp.csc_array((data, A.indices, A.indptr), A.shape) for data in values]
    errors = [backward_error(*one) for one in zip(systems, x, b, strict=True)]
    assert max(errors) < limit, f"a system of a batch: backward error {max(errors):.1e}"
    return max(errors)


def check_complement(case, kind, scalar, clock, limit):
    """The backward error of a solve by way of the complement on the last unknowns, which fronts have left."""
    A = turned(gallery.named(case), scalar)
    interface = np.arange(A.shape[0] - INTERFACE, A.shape[0])
    factor = gs.analyze(A, schur=interface, engine="supernodal", **kind).factor(clock.put(A.data))
    factor.refactor(clock.put(A.data))
    assert factor.eliminated
    b = np.random.default_rng(0).normal(size=A.shape[0]).astype(A.dtype)
    y = np.linalg.solve(on_host(factor.schur), on_host(factor.condense(clock.put(b))))
    error = backward_error(A, on_host(factor.expand(clock.put(y))), b)
    assert error < limit, f"backward error {error:.1e}"
    return error


def run(arguments):
    clock = device_clock(arguments)
    if not arguments.emulated:
        import cupy

        cupy.cuda.set_allocator(None)
    tuning = {"grouped": False} if arguments.apart else {}
    for scalar in arguments.scalars:
        for engine in arguments.engines:
            limit = 1e3 * np.finfo(scalar).eps
            for case, way, A, context, factorize in kinds(engine, scalar, tuning):
                if case not in arguments.cases:
                    continue
                with context():
                    yield well(case, engine, f"{way} {scalar}", check(A, factorize(A), clock, limit))
            if engine == "supernodal" and COLUMNS in arguments.cases:
                yield well(COLUMNS, engine, f"batch {scalar}", check_batch(COLUMNS, scalar, clock, limit))
            for case in [*INTERFACES] if engine == "supernodal" else []:
                if case in arguments.cases:
                    error = check_complement(case, INTERFACES[case], scalar, clock, limit)
                    yield well(case, engine, f"schur {scalar}", error)


def well(case, engine, variant, error):
    note(f"{engine} {case} {variant}: well")
    return records.make(case, engine, "check", None, backward_error=error, variant=variant)
