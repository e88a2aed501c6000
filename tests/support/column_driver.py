"""Runs the kernels of the column engines in the emulator, on the arrays of a column plan."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpusplu import _core
from gpusplu.cuda import layout

from . import analyses, emulated

SHARED = "shared/columns.hpp"
CONTROL_BYTES = layout.struct(SHARED, "ColumnControl").itemsize
THREADS, WARPS = layout.constant(SHARED, "COLUMN_THREADS"), layout.constant(SHARED, "COLUMN_WARPS")


@dataclass
class Groups:
    """Groups in the order of tickets, and where each level begins."""

    range: np.ndarray
    level_ptr: np.ndarray

    @property
    def columns(self) -> int:
        return int(np.diff(self.range.reshape(-1, 2)).max(initial=0))


def groups(plan, leaf=64, capacity=200, columns=40, single=None):
    return Groups(*_core.column_groups(plan.col_ptr, plan.row, plan.diag, leaf, capacity, columns, single))


def column_arrays(file, plan, maps=True):
    """(struct ColumnArrays, what it points to)."""
    maps = maps and plan.has_maps
    narrow = plan.map.dtype == np.uint16
    pointers = {
        **{name: getattr(plan, name) for name in ("col_ptr", "row", "diag", "row_ptr", "col", "place", "u_ptr")},
        "map_ptr": plan.map_ptr if maps else None,
        "map16": plan.map if maps and narrow else None,
        "map32": plan.map if maps and not narrow else None,
    }
    args = np.zeros((), layout.struct(file, "ColumnArrays"))
    for name, array in pointers.items():
        args[name] = 0 if array is None else array.ctypes.data
    args["n"] = plan.n
    return args


def tickets(file, groups, control, first=0, count=None, last=1):
    args = np.zeros((), layout.struct(file, "ColumnTickets"))
    args["groups"], args["control"] = groups.range.ctypes.data, control.ctypes.data
    args["first"], args["count"] = first, len(groups.range) // 2 if count is None else count
    args["last_launch"] = last
    return args


def long_columns(plan, groups, columns):
    """What `LongArrays` points to; each of the columns is a group."""
    columns = np.asarray(columns, np.int32)
    first, end = groups.range.reshape(-1, 2).T
    index = {(k, k + 1): i for i, k in enumerate(columns.tolist())}
    of_ticket = np.array([index.get(pair, -1) for pair in zip(first.tolist(), end.tolist(), strict=True)], np.int32)
    assert (of_ticket >= 0).sum() == len(columns)
    return {"of_ticket": of_ticket, **analyses.long_columns(plan.col_ptr, plan.row, plan.diag, columns)}


class Factorization:
    """factor_sflu again and again on one plan; what no kernel writes stays NaN.

    With a division factor_crisscross: columns from there on have `trailing_bytes` of shared memory, and lie there if
    they have up to `kept` entries.
    """

    def __init__(
        self,
        plan,
        groups,
        dtype,
        maps=True,
        capacity=200,
        sanitize=False,
        division=None,
        places=60,
        longs=(),
        trailing_bytes=1600,
        kept=60,
    ):
        self.division, self.places = plan.n if division is None else division, places
        self.plan, self.groups, self.maps, self.capacity = plan, groups, maps, capacity
        self.dtype = np.dtype(dtype)
        self.trailing, self.trailing_bytes, self.kept = {}, 0, kept
        if self.division < plan.n:
            sizes = trailing_bytes, kept, 4, self.dtype.itemsize
            self.trailing = _core.trailing_terms(plan.col_ptr, plan.row, plan.diag, self.division, *sizes)
            self.trailing_bytes = trailing_bytes
        self.library = emulated.compile(
            "columns/crisscross.cu" if self.trailing else "columns/sflu.cu", self.dtype.char, 0
        )
        self.done, self.control = np.zeros(plan.n, np.uint32), np.zeros(4, np.uint32)
        self.source = np.full(plan.nnz, -1, np.int32)
        self.source[plan.entry_place] = plan.entry_source
        self.scale = np.empty(len(plan.entry_source))
        self.scale[plan.entry_source] = plan.entry_scale
        self.factor = np.full(plan.nnz, np.nan, self.dtype)
        self.longs = long_columns(plan, groups, longs) if len(longs) else {}

    def run(self, values, tiny=1e-10, singular=0.0, seed=0, grid=3, by_levels=False, level_ptr=None):
        """(factor, status); `level_ptr`: tickets where launches begin and end."""
        status = np.zeros((), layout.struct("columns/sflu.cu", "Status"))
        args = np.zeros((), layout.struct("columns/sflu.cu", "SfluArgs"))
        args["columns"] = column_arrays("columns/sflu.cu", self.plan, self.maps)
        for name in ("source", "scale", "factor", "done"):
            args[name] = getattr(self, name).ctypes.data
        for name, array in self.longs.items():
            args["longs"][name] = array.ctypes.data
        for name, array in self.trailing.items():
            args["trailing"][name] = array.ctypes.data
        args["trailing"]["capacity"], args["trailing"]["kept"] = self.trailing_bytes, self.kept
        args["values"], args["status"] = values.ctypes.data, status.ctypes.data
        args["capacity"], args["flags"] = self.capacity, self.groups.columns
        args["tiny"], args["singular"] = tiny, singular
        args["division"] = self.division
        follows = _core.columns_that_follow(self.plan.col_ptr, self.plan.row, self.plan.diag)
        args["follows"], args["places"] = follows.ctypes.data, self.places
        flags = 4 * _core.flag_words(self.groups.columns)
        shared = flags + self.capacity * self.dtype.itemsize + 2 * WARPS * self.places
        shared = CONTROL_BYTES + WARPS * self.dtype.itemsize + max(shared, self.trailing_bytes)
        if level_ptr is None:
            level_ptr = self.groups.level_ptr if by_levels else self.groups.level_ptr[[0, -1]]
        for begin, end in pairwise(level_ptr):
            last = end == level_ptr[-1]
            args["tickets"] = tickets("columns/sflu.cu", self.groups, self.control, begin, end - begin, last)
            name = "factor_crisscross" if self.trailing else "factor_sflu"
            name += "" if args["columns"]["map16"] else "_search"
            self.library.launch(name, grid, THREADS, shared, args, seed)
        return self.factor.copy(), status


def solve(plan, groups, factor, b, trans="N", columns=1, seed=0, grid=3, by_levels=False, skipped=0):
    """op(A)^-1 b, b of shape (n, nrhs), `columns` right-hand sides at a time.

    Then again with the same packets, but without the first groups, if some are to be `skipped`.
    """
    b = np.asfortranarray(b)
    x = np.full_like(b, np.nan, order="F")
    n, nrhs = b.shape
    rhs_groups = -(-nrhs // columns)
    row_diag = plan.row_ptr[:-1] + np.bincount(plan.row[plan.row > plan.column], minlength=n)
    packets = np.zeros(4 * n * columns * rhs_groups, b.dtype)
    control = np.zeros(4, np.uint32)
    into, out = (plan.row_perm, plan.row_scale), (plan.col_perm, plan.col_scale)
    if trans != "N":
        into, out = out, into
    pointers = {
        "row_diag": row_diag.astype(np.int64),
        "factor": factor,
        "b": b,
        "x": x,
        "packets": packets,
        "perm_in": into[0],
        "scale_in": into[1],
        "perm_out": out[0],
        "scale_out": out[1],
    }
    args = np.zeros((), layout.struct("columns/column_solve.cu", "ColumnSolveArgs"))
    for name, array in pointers.items():
        args[name] = array.ctypes.data
    args["columns"] = column_arrays("columns/column_solve.cu", plan)
    args["group_count"], args["most_columns"] = len(groups.range) // 2, groups.columns
    args["ld"], args["nrhs"], args["conjugate"] = n, nrhs, trans == "H"
    args["division"] = n
    shared = CONTROL_BYTES + groups.columns * columns * 2 * b.itemsize
    name = f"solve_columns_{'' if trans == 'N' else 'transposed_'}{columns}"
    library = emulated.compile("columns/column_solve.cu", b.dtype.char, 0)
    tickets_end = 2 * int(args["group_count"])
    launches = list(pairwise(both_ways(groups.level_ptr) if by_levels else [0, tickets_end]))
    for begin, end in [*launches, (skipped, tickets_end)] if skipped else launches:
        first, count = begin * rhs_groups, (end - begin) * rhs_groups
        args["tickets"] = tickets("columns/column_solve.cu", groups, control, first, count, end == tickets_end)
        library.launch(name, grid, THREADS, shared, args, seed)
    return x


def both_ways(level_ptr):
    """Where levels begin forward, then backward."""
    return np.concatenate([level_ptr, 2 * level_ptr[-1] - level_ptr[-2::-1]])
