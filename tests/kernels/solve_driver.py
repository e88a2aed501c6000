"""Runs the solve kernels in the emulator on the factor that reference_factor.py lays out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import emulated
import numpy as np
import scipy.sparse as sp
from reference_factor import reference_factor

from gpusplu import _core, gallery
from gpusplu.kernels import layout
from gpusplu.plan import Plan, make_plan

EPS = {char: float(np.finfo(char).eps) for char in "fdFD"}
GROUP_CAPACITY = 32
MULTIPROCESSORS = 4


@dataclass
class Pattern:
    ptr: np.ndarray
    ind: np.ndarray


@dataclass
class Case:
    """A matrix, its plan and its reference factor."""

    A: sp.csc_array
    plan: Plan
    factor: np.ndarray

    @property
    def scalar(self) -> str:
        return str(self.A.dtype.char)

    @cached_property
    def schedule(self):
        return _core.make_solve_schedule(self.plan._core)


def canonical(A) -> sp.csc_array:
    A = sp.csc_array(A)
    A.sum_duplicates()
    A.sort_indices()
    return A


def matrix(name: str, dtype: str, cholesky: bool) -> sp.csc_array:
    """A gallery matrix or a random one; complex ones have entries of all phases (Hermitian for Cholesky)."""
    rng = np.random.default_rng(7)
    if name == "arrow":  # many children below one front
        A = sp.diags_array(np.full(420, 9.0)).tolil()
        A[-3:, :] = 0.1
        A[:, -3:] = 0.1
        A.setdiag(60.0)
    elif name == "dense":
        n = 100 if dtype == "D" else 150  # one front of phase 2
        A = sp.csc_array(rng.standard_normal((n, n)) + 40 * np.eye(n))
        A = A + A.T if cholesky else A
    else:
        A = gallery.named(name)
    A = canonical(A).astype(np.complex128 if dtype in "FD" else np.float64)
    if dtype in "FD":
        turn = sp.diags_array(np.exp(1j * np.arange(A.shape[0])))
        A = canonical(turn @ A @ turn.conj())
        if not cholesky:
            A.data = A.data * np.exp(0.3j * rng.standard_normal(A.nnz))
    return A.astype(dtype)


def case(name: str, dtype: str, cholesky: bool, **parameters: int) -> Case:
    A = matrix(name, dtype, cholesky)
    pattern = Pattern(A.indptr.astype(np.int64), A.indices.astype(np.int32))
    symbolic = _core.analyze(pattern.ptr, pattern.ind, A.data, cholesky=cholesky, method="front")
    tile = 32 if dtype == "D" else 64
    plan = make_plan(symbolic, pattern, dtype, **{"large_tile": tile, **parameters})
    # In the next wider type: what is compared below is the solve, not this factor.
    wide = A.data.astype({"f": "d", "F": "D"}.get(dtype, dtype))
    return Case(A, plan, reference_factor(plan, wide, plan.large_tile).factor.astype(dtype))


def pointer(array: np.ndarray | None) -> int:
    return 0 if array is None or array.size == 0 else array.ctypes.data


def solve(case: Case, b: np.ndarray, trans: str = "N", seed: int = 0, grid: int = 2) -> np.ndarray:
    """x of op(A) x = b, by the kernels; b has one column or more."""
    plan, schedule, cholesky = case.plan, case.schedule, int(case.plan.cholesky)
    columns = np.asfortranarray(b.reshape(len(b), -1), dtype=case.A.dtype)
    nrhs = columns.shape[1]
    width = 1 if nrhs == 1 else 4
    groups = -(-nrhs // width)
    transposed = trans != "N" and not cholesky
    conjugate = trans == ("T" if cholesky else "H")
    scales = [np.ascontiguousarray(s) for s in (plan.row_scale, plan.col_scale)]
    perms = [np.ascontiguousarray(p) for p in (plan.row_perm, plan.col_perm)]
    into, out = (1, 0) if transposed else (0, 1)
    places = max(1, len(plan.below))
    nan = np.array(np.nan, case.A.dtype)
    x = np.full_like(columns, nan)
    work = np.full(groups * plan.n * width, nan)
    vectors = np.full(groups * places * width, nan)
    counters = np.zeros(8 + 2 * GROUP_CAPACITY * plan.nf, np.uint32)
    arrays = (schedule.slot_bytes, plan.below, schedule.piece_ptr, schedule.piece_bytes)
    keep = [np.ascontiguousarray(a) for a in arrays]
    args = np.zeros((), layout.struct("solve_fronts.cu", "SolveArgs"))
    for name, value in {
        "slots": pointer(keep[0]),
        "tickets": schedule.tickets,
        "groups": groups,
        "group_capacity": GROUP_CAPACITY,
        "front_count": plan.nf,
        "below": pointer(keep[1]),
        "piece_ptr": pointer(keep[2]),
        "pieces": pointer(keep[3]),
        "perm_in": pointer(perms[into]),
        "perm_out": pointer(perms[out]),
        "scale_in": pointer(scales[into]),
        "scale_out": pointer(scales[out]),
        "factor": pointer(case.factor),
        "b": pointer(columns),
        "x": pointer(x),
        "ld": len(b),
        "n": plan.n,
        "nrhs": nrhs,
        "conjugate": conjugate,
        "places": places,
        "work": pointer(work),
        "vectors": pointer(vectors),
        "counters": pointer(counters),
    }.items():
        args[name] = value
    library = emulated.compile("solve_transposed.cu" if transposed else "solve_fronts.cu", case.scalar, cholesky)
    middle = "_transposed" if transposed else ""
    shared = 16 + shared_scalars(width) * case.A.dtype.itemsize
    for repeat in range(2):  # the second solve finds the counters as the first left them
        x[:] = nan
        for direction in ("forward", "backward"):
            library.launch(f"solve_{direction}{middle}_{width}", grid, 256, shared, args, seed + repeat if seed else 0)
    return x.reshape(b.shape)


def shared_scalars(width: int) -> int:
    """As BlockScratch in solve_block.cuh."""
    return (256 * (2 if width == 1 else 1) + 2 * (256 + 16)) * width


def backward_error(case: Case, x: np.ndarray, b: np.ndarray, trans: str) -> float:
    wide = case.A.astype(np.complex128 if case.scalar in "FD" else np.float64)
    A = {"N": wide, "T": wide.T, "H": wide.conj().T}[trans]
    residual = np.abs(A @ x - b).max()
    return float(residual / (np.abs(A).sum(axis=1).max() * np.abs(x).max() + np.abs(b).max()))
