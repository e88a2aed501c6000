"""Schur complements of fronts on a device: all fronts but the last one, the interface, are factored."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from threading import RLock
from typing import Any

import numpy as np

from ... import _core
from ...common.matrix import Pattern
from ...common.options import Options
from ...cuda.layout import constant, struct
from ...cuda.stream import Buffer, Stream
from ...errors import DeviceMemoryError
from ..device.buffers import Buffers, Memory, is_asymmetric
from ..device.call import Call, CommandGraphs
from ..device.factor import report_of
from ..device.interrupted import Interrupted
from .memory import limits_of
from .plan import Plan, make_plan
from .program import FrontProgram

FILE = "fronts/complement.cu"
CHILD_COLUMN, THREADS = struct(FILE, "ChildColumn"), constant(FILE, "COMPLEMENT_THREADS")


class ComplementProgram(FrontProgram):
    """A plan of fronts of which the last one, an interface, is not eliminated. The parameters are `FrontProgram`'s."""

    _entries: Buffer | None = None

    @property
    def files(self) -> tuple[str, ...]:
        return (*super().files, FILE)

    @property
    def complement_bytes(self) -> int:
        return int(self.plan.n_interface) ** 2 * self.dtype.itemsize

    def missing_bytes(self, usable: int) -> int:
        return super().missing_bytes(usable - self.complement_bytes)

    def factor_memory(self) -> Memory:
        memory = super().factor_memory()
        return memory._replace(empty=memory.empty | {"complement": self.complement_bytes})

    def factor(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        """Factor the interior and assemble the complement."""
        for segment in range(len(self.plan.segment_ptr) - 2):
            self.fronts.factor_segment(stream, buffers, values, segment)
        order, own = int(self.plan.n_interface), buffers.own
        shape, fields = (self.blocks(order, 1, 8), THREADS, 0), {name: own[name] for name in ("blocks", "complement")}
        self.launch(stream, FILE, "assemble_complement", shape, **self._assembly, **fields, order=order, values=values)

    def gather(self, stream: Stream, buffers: Buffers, entries: np.ndarray, to: int) -> None:
        """Copy some canonical values, always the same ones, to an address."""
        if self._entries is None:
            self._entries = self.upload(entries.astype(np.int64))
            self.device.own_stream().synchronize()
        arrays = buffers.values.pointer, to, 0, buffers.device_status.pointer
        self.launch_gather(stream, "gather_values", arrays, (self._entries, None), entries.size)

    _assembly = cached_property(lambda self: self.upload_all(assembly_of(self.plan)))


def assembly_of(plan: Plan) -> dict[str, np.ndarray | None]:
    """The kernel's arguments about the interface, by name."""
    last, m = plan.nf - 1, int(plan.n_interface)
    children = children_of(plan, last)
    entries = slice(*plan.entry_ptr[last : last + 2].tolist())
    row, column = plan.entry_place[entries] & 0xFFFF, plan.entry_place[entries] >> 16
    by_column = np.argsort(column, kind="stable")
    factors = [
        1 / scale[perm[plan.n - m :]] if scale.size else None
        for scale, perm in ((plan.row_scale, plan.row_perm), (plan.col_scale, plan.col_perm))
    ]
    return {
        "child_ptr": pointers(children["column"], m),
        "children": children,
        "place": plan.place,
        "entry_ptr": pointers(column, m),
        "entry_row": row[by_column].astype(np.int32),
        "entry_source": np.asarray(plan.entry_source[entries])[by_column],
        "row_factor": factors[0],
        "column_factor": factors[1],
    }


def children_of(plan: Plan, front: int) -> np.ndarray:
    """Type CHILD_COLUMN: all columns of contribution blocks that go to a front, by its columns."""
    children = np.asarray(plan.child[slice(*plan.child_ptr[front : front + 2].tolist())])
    height = (plan.rows - plan.width)[children]
    child = np.repeat(children, height)
    k = np.arange(len(child)) - np.repeat(np.cumsum(height) - height, height)  # column of the child's block
    above = k if plan.one_triangle else 0
    found = np.zeros(len(child), CHILD_COLUMN)
    found["at"] = plan.block_offset[child] + k * plan.block_ld[child].astype(np.int64) + above
    found["place"] = plan.below_ptr[child] + above
    found["count"] = np.repeat(height, height) - above
    found["column"] = plan.place[plan.below_ptr[child] + k]
    return found[np.argsort(found["column"], kind="stable")]


def pointers(columns: np.ndarray, count: int) -> np.ndarray:
    """Where each column begins, and the end."""
    return np.concatenate(([0], np.cumsum(np.bincount(columns, minlength=count)))).astype(np.int32)


def make_program(
    device: Any, whole: Any, pattern: Pattern, dtype: np.dtype, hermitian: bool, device_memory: int | None
) -> ComplementProgram:
    """The program that all factors by an analysis with an interface share."""
    plan = make_plan(whole, pattern, dtype, limits_of(device, device_memory))
    program = ComplementProgram(device, plan, pattern, hermitian)
    program.prepare()
    return program


class DeviceComplement:
    """Fronts of an interior on a device, used only for their Schur complement."""

    def __init__(self, program: ComplementProgram, options: Options, device_memory: int | None):
        self._program, self._device_memory = program, device_memory
        self._device, self._lock, self._interrupted = program.device, RLock(), Interrupted(program.devices)
        self._policy = _core.AccuracyPolicy(program.dtype.char, pivoting=options.pivoting, refine=options.refine)
        self._commands: CommandGraphs | None = None

    def factor(self, canonical: np.ndarray, reserved_bytes: int) -> np.ndarray | None:
        """The complement of canonical values, shape (m, m), Fortran-contiguous; None if the pivots were not acceptable,
        or memory is short besides another factor of that many bytes."""
        with self._device, self._lock, self._interrupted:
            first, commands = self._commands is None, self._workspace(reserved_bytes)
            if commands is None:
                return None
            if not first:  # a graph pays off
                commands.graph(Call("held"))
            stream = commands.begin()
            commands.send(stream, commands.buffers.values.pointer, canonical)
            if not self._are_fit(commands.factor_now(stream)):
                return None
            order = int(self._program.plan.n_interface)
            complement = np.empty((order, order), self._program.dtype, order="F")
            self._device.fetch(self._device.own_stream(), complement, commands.buffers.own["complement"].pointer)
            return complement

    def refactor(self, values: Any, entries: np.ndarray, reserved_bytes: int) -> tuple[Any, Any, Any] | None:
        """The complement of values in the caller's order on the device, left there; also these canonical `entries`, and
        all of them. None as in `factor`, or if values are not finite or not symmetric."""
        with self._device, self._lock, self._interrupted:
            commands = self._workspace(reserved_bytes)
            if commands is None:
                return None
            program, buffers, device = self._program, commands.buffers, self._device
            order, nnz = int(program.plan.n_interface), program.pattern.nnz
            shapes = (order, order), entries.shape, (nnz,)
            complement, some, canonical = (device.array(shape, program.dtype) for shape in shapes)
            graph, stream = commands.graph(Call("new")), commands.begin()
            stream.copy(buffers.input.pointer, device.pointer(values), values.nbytes)
            stream.replay(graph)
            stream.copy(device.pointer(complement), buffers.own["complement"].pointer, complement.nbytes)
            stream.copy(device.pointer(canonical), buffers.values.pointer, canonical.nbytes)
            program.gather(stream, buffers, entries, device.pointer(some))
            commands.report(stream)
            stream.synchronize()
            return (complement, some, canonical) if self._are_fit(commands.status()) else None

    def _workspace(self, reserved_bytes: int) -> CommandGraphs | None:
        """Allocated on first use; None if memory is short."""
        if self._commands is None:
            allowed = self._device_memory
            with suppress(DeviceMemoryError):
                self._commands = CommandGraphs(
                    self._program, None if allowed is None else max(0, allowed - reserved_bytes)
                )
        return self._commands

    def _are_fit(self, found: Any) -> bool:
        if is_asymmetric(found, self._program.dtype):
            return False
        pivots = report_of(found, self._program.plan, self._program.growth_bound)
        return bool(self._policy.after_factorization(pivots, True) == _core.Decision.accept)
