"""One small case of every kind for compute-sanitizer, which makes kernels 10 to 100 times slower:

    compute-sanitizer --tool memcheck python asv_bench/device/sanitize.py
    compute-sanitizer --tool racecheck python asv_bench/device/sanitize.py --apart

Factors, refactors and solves in each number type on the device, and checks the backward errors: the supernodal engine
by LU and Cholesky, with the memory that it wants and with windows (`streaming`), and the engines of circuits, each of
their modes. CuPy's memory pool is turned off, so that an access beyond an array is an access beyond an allocation. The
matrices are just large enough for fronts of every class.

Warps that work off a group of columns hand values to each other through shared memory by acquire and release of flags,
or by words that carry their own tag. Racecheck knows barriers only and reports each of these hand-overs. --apart gives
every column a group of its own: what is left is what barriers order. Groups are tested by the emulator, in any order
of their warps, and by equal bits on the device (tests/gpu).
"""

import argparse
from dataclasses import replace

import cupy
import numpy as np
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.cli.report import backward_error
from gpusplu.engines import front_memory
from gpusplu.engines.crisscross import CrisscrossProgram
from gpusplu.engines.glu import MODES, GluProgram
from gpusplu.engines.grouped_program import GroupedProgram
from gpusplu.engines.sflu import SfluProgram
from gpusplu.plans.fronts import make_plan

FRONTS = ("rlc:16x16", "convdiff:11", "poisson:9x9x9", "elast:5x5x5")
STREAMED = "poisson:24x24x24"
COLUMNS = "rlc:16x16"
CORNER = 100
COLUMNS_OF_B = 3

DIVISION = gallery.named(COLUMNS).shape[0] - CORNER

# Engine, program, and attributes of its class that force a mode.
MODES_OF_ENGINES = [
    *(("glu", GluProgram, {"forced_mode": mode}) for mode in (None, *MODES)),
    *(("sflu", SfluProgram, {"by_levels": levels}) for levels in (False, True)),
    ("crisscross", CrisscrossProgram, {"forced": DIVISION}),
]


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


def cases(scalar):
    """Engine, name of what is run, matrix, and function that factors it."""
    for name in FRONTS:
        factorize = gs.cholesky if name.startswith(("poisson", "elast")) else gs.splu
        yield "supernodal", name, turned(gallery.named(name), scalar), lambda A, f=factorize: f(A, engine="supernodal")
    if scalar == "d":
        yield "supernodal", f"{STREAMED} streaming", gallery.named(STREAMED), streaming
    for engine, program, forced in MODES_OF_ENGINES:
        name = " ".join([COLUMNS, *(f"{name}={value}" for name, value in forced.items())])
        yield engine, name, turned(gallery.named(COLUMNS), scalar), forcing(engine, program, forced)
    yield "sflu", f"{COLUMNS} with a border", turned(bordered(), scalar), with_long_column


def forcing(engine, program, forced):
    """A function that factors by this engine, with these attributes of its program's class."""

    def factorize(A):
        for name, value in forced.items():
            setattr(program, name, value)
        return gs.splu(A, engine=engine)

    return factorize


def streaming(A):
    """A Cholesky factor with hardly more memory than the least that it can do with."""
    symbolic = gs.analyze(A, cholesky=True, engine="supernodal")
    plan, pattern = symbolic._plan, symbolic._pattern
    least = make_plan(symbolic._core, pattern, plan.scalar, replace(plan.limits, memory_bytes=1))
    needed = front_memory.needed_bytes(least, pattern) + front_memory.all_vector_bytes(least, COLUMNS_OF_B)
    factor = gs.cholesky(A, engine="supernodal", device_memory=int(1.05 * needed))
    assert factor.stats.n_windows > 1
    return factor


def with_long_column(A):
    factor = gs.splu(A, engine="sflu")
    assert factor._core._recorded.program.long_columns.size == 1
    return factor


def check(A, factorize, limit):
    """Factor, refactor and solve; raises AssertionError where a backward error is beyond the limit."""
    factor = factorize(A)
    factor.refactor(cupy.asarray(A.data))
    b = np.asfortranarray(np.random.default_rng(0).normal(size=(A.shape[0], COLUMNS_OF_B)).astype(A.dtype))
    for columns in (b[:, :1], b):
        for trans, M in (("N", A), ("T", A.T), ("H", A.conj().T)):
            error = backward_error(M, factor.solve(cupy.asarray(columns), trans).get(), columns)
            assert error < limit, f"{trans}: backward error {error:.1e}"
    factor.refactor_solve(cupy.asarray(A.data), cupy.asarray(b[:, 0]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scalars", default="fdFD", help="letters of f, d, F, D")
    parser.add_argument("--engines", default="supernodal,glu,sflu,crisscross", help="names joined by commas")
    parser.add_argument("--apart", action="store_true", help="columns one by one, not in groups")
    arguments = parser.parse_args()
    if arguments.apart:
        GroupedProgram.grouped = False
    cupy.cuda.set_allocator(None)
    for scalar in arguments.scalars:
        for engine, name, A, factorize in cases(scalar):
            if engine in arguments.engines.split(","):
                check(A, factorize, 1e3 * np.finfo(scalar).eps)
                print(f"{engine} {name} {scalar}: well", flush=True)


if __name__ == "__main__":
    main()
