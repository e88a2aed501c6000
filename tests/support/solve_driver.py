"""Runs the solve kernels in the emulator on the factor of plan_reference.py."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from gpusplu import _core, gallery
from gpusplu.common import timing
from gpusplu.cuda import layout
from gpusplu.engines.supernodal.plan import Limits, Plan, make_plan
from support.analyses import analyze

from . import emulated, plan_reference
from .front_plans import Pattern
from .small_matrices import canonical

GROUP_CAPACITY = 32
SHARED = "shared/solve.hpp"


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


def case(
    name: str, dtype: str, cholesky: bool, multiprocessors: int = Limits.multiprocessors, **parameters: int
) -> Case:
    A = matrix(name, dtype, cholesky)
    pattern = Pattern(A)
    symbolic = analyze(pattern.ptr, pattern.ind, A.data, cholesky=cholesky, method="front")
    plan = make_plan(symbolic, pattern, dtype, Limits(multiprocessors=multiprocessors), **parameters)
    # In the next wider type: what is compared below is the solve, not this factor.
    wide = A.data.astype({"f": "d", "F": "D"}.get(dtype, dtype))
    return Case(A, plan, plan_reference.factor(plan, wide, items=False)[0].astype(dtype))


def pointer(array: np.ndarray | None) -> int:
    return 0 if array is None or array.size == 0 else array.ctypes.data


class Solver:
    """The launches of one solve, in their order, as an engine does them."""

    def __init__(self, case: Case, b: np.ndarray, trans: str):
        plan, schedule = case.plan, case.schedule
        cholesky = int(plan.cholesky)
        self.b = np.asfortranarray(b.reshape(len(b), -1), dtype=case.A.dtype)
        nan = np.array(np.nan, case.A.dtype)
        self.x = np.full_like(self.b, nan)
        nrhs = self.b.shape[1]
        self.plan, self.width = plan, plan.solve_columns(nrhs)
        groups, places = -(-nrhs // self.width), max(1, len(plan.below))
        transposed = trans != "N" and not cholesky
        perms, scales = [plan.row_perm, plan.col_perm], [plan.row_scale, plan.col_scale]
        into, out = (1, 0) if transposed else (0, 1)
        self.kernels = "fronts/solve_transposed.cu" if transposed else "fronts/solve_fronts.cu"
        self.middle = "_transposed" if transposed else ""
        self.compile = lambda file: emulated.compile(file, case.scalar, cholesky)
        self.keep: list[np.ndarray] = []
        self.args = np.zeros((), layout.struct("fronts/solve_large.cu", "LargeSolveArgs"))
        self.fill(
            self.args["solve"],
            slots=schedule.slot_bytes,
            tickets=schedule.tickets,
            groups=groups,
            group_capacity=GROUP_CAPACITY,
            front_count=plan.nf,
            below=plan.below,
            chunk_ptr=schedule.chunk_ptr,
            chunks=schedule.chunk_bytes,
            perm_in=perms[into],
            perm_out=perms[out],
            scale_in=scales[into],
            scale_out=scales[out],
            factor=case.factor,
            b=self.b,
            x=self.x,
            ld=len(b),
            n=plan.n,
            nrhs=nrhs,
            conjugate=trans == ("T" if cholesky else "H"),
            places=places,
            work=np.full(groups * plan.n * self.width, nan),
            vectors=np.full(groups * places * self.width, nan),
            counters=np.zeros(layout.constant(SHARED, "SOLVE_CONTROL") + 2 * GROUP_CAPACITY * plan.nf, np.uint32),
            control=np.zeros(layout.constant(SHARED, "SOLVE_TICKETS"), np.uint32),
            packets=np.zeros((plan.n * groups * self.width + places) * case.A.dtype.itemsize // 4, np.uint64),
        )
        large = len(schedule.large_bytes.view(layout.struct(SHARED, "LargeSolveFront")))
        task = layout.struct(SHARED, "LargeSolveTask")
        self.fill(
            self.args,
            fronts=schedule.large_bytes,
            forward=schedule.large_forward_bytes,
            backward=schedule.large_backward_bytes,
            forward_count=len(schedule.large_forward_bytes.view(task)),
            backward_count=len(schedule.large_backward_bytes.view(task)),
            front_count=large,
            transposed=transposed,
            progress=np.zeros(max(1, groups * large), np.uint32),
        )

    def fill(self, record: np.ndarray, **fields: object) -> None:
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value = np.asfortranarray(value)
                self.keep.append(value)
            record[name] = pointer(value) if isinstance(value, np.ndarray) else value

    def run(self, grid: int, seed: int) -> None:
        plan, width, args = self.plan, self.width, self.args
        suffix = "1" if width == 1 else "several"
        threads = layout.constant(SHARED, "SOLVE_THREADS")
        fronts = plan.solve_shape(width)[1]
        forward, backward = (plan.large_solve_shape(way, width)[1] for way in (True, False))
        is_large = args["forward_count"] > 0
        small = self.compile(self.kernels)
        small.launch(f"solve_forward{self.middle}_{suffix}", grid, threads, fronts, args["solve"], seed)
        args["solve"]["ends_solve"] = args["solve"]["tickets"] == 0
        if is_large:
            library = self.compile("fronts/solve_large.cu")
            library.launch(f"solve_large_forward_{suffix}", grid, threads, forward, args, seed)
            library.launch(f"solve_large_backward_{suffix}", grid, threads, backward, args, seed)
        args["solve"]["ends_solve"] = 1
        small.launch(f"solve_backward{self.middle}_{suffix}", grid, threads, fronts, args["solve"], seed)


def solve(case: Case, b: np.ndarray, trans: str = "N", seed: int = 0, grid: int = 2) -> np.ndarray:
    """x of op(A) x = b; solved twice, since the second solve finds the counters as the first left them."""
    solver = Solver(case, b, trans)
    for repeat in range(2):
        solver.x[:] = np.nan
        solver.run(grid, seed + repeat if seed else 0)
    return solver.x.reshape(b.shape)


def backward_error(case: Case, x: np.ndarray, b: np.ndarray, trans: str) -> float:
    wide = case.A.astype(np.complex128 if case.scalar in "FD" else np.float64)
    A = {"N": wide, "T": wide.T, "H": wide.conj().T}[trans]
    return timing.backward_error(A, x, b)
