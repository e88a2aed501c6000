"""The JAX primitives that sparse solves and their derivatives consist of.

solve, its derivative, the product with a matrix, which is a function of JAX's, and its transpose are closed under
derivatives of any order (gradients.py has the mathematics; JAX transposes without conjugating). slogdet has the
selected inverse as its derivative, which solve and product differentiate. Each primitive is one callback, batches too:
vmap adds right-hand sides of one factor if the matrix is the same for all, else systems of one native batch.

Operands are those of `host`: ``values, *index, b``, where `index` is empty if the parameter `structure` has the
pattern, which then costs nothing per call, and else the traced index arrays. Compiled programs call back through
`foreign`: on a CPU to `host`, on a GPU to `device`. Padding has row and column n, which functions of JAX leave out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial, reduce
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..common.arrays import Jax
from ..common.rhs import UNITS_PER_SOLVE
from . import device, foreign, host
from .store import ADJOINT, AGAIN, SINGLE_USE
from .structure import COLUMN, INDEX_AXES, ROW, VALUES, VECTORS, Structure

# XLA evaluates what follows from constant index arrays while it compiles, 2 us for each of so many entries at most.
MOST_FOLDED = 1 << 18
# Names of parameters.
STATIC = ("structure", "n", "layout", "transpose", "kept")


@partial(jax.jit, static_argnames=("structure", "n", "layout", "transpose"), inline=True)
def product(
    values: Any, index: tuple[Any, ...], x: Any, *, structure: Structure | None, n: int, layout: str, transpose: bool
) -> Any:
    """``op(A) x``, of vectors that are rows."""

    def one(values: Any, x: Any, *index: Any) -> Any:
        to, source = coordinates(structure, n, layout, index, values.shape[0])
        if transpose:
            to, source = source, to
        return jnp.zeros_like(x).at[:, to].add(values * taken(x, source), mode="drop")

    return each_system(one, (VALUES, VECTORS), (values, x), index, layout)


@partial(jax.jit, static_argnames=("structure", "n", "layout"))
def turned(
    values: Any, index: tuple[Any, ...], tangent: Any, *, structure: Structure | None, n: int, layout: str
) -> Any:
    """The derivative of `selected`: entries (column, row) of ``-A^-1 dA A^-1``, by 2 n solves."""
    how = {"structure": structure, "n": n, "layout": layout, "transpose": False}

    def add(entries: Any, first: Any) -> tuple[Any, None]:
        def one(x: Any, entries: Any, *index: Any) -> Any:
            rows, columns = coordinates(structure, n, layout, index, entries.shape[0])
            inside = (rows >= first) & (rows < first + UNITS_PER_SOLVE)
            place = jnp.where(inside, rows - first, UNITS_PER_SOLVE)
            return entries - x.at[place, columns].get(mode="fill", fill_value=0)

        units = (first + jnp.arange(UNITS_PER_SOLVE)[:, None] == jnp.arange(n)).astype(values.dtype)
        (x,) = solve_p.bind(values, *index, units, kept=AGAIN, **how)
        (x,) = solve_p.bind(values, *index, product(tangent, index, x, **how), kept=AGAIN, **how)
        return each_system(one, (VECTORS, VALUES), (x, entries), index, layout), None

    return jax.lax.scan(add, jnp.zeros_like(values), jnp.arange(0, n, UNITS_PER_SOLVE))[0]


def taken(vectors: Any, where: Any) -> Any:
    """Elements of rows; 0 where there are none."""
    return vectors.at[:, where].get(mode="fill", fill_value=0)


def coordinates(structure: Structure | None, n: int, layout: str, index: tuple[Any, ...], size: int) -> tuple[Any, Any]:
    """Rows and columns of the stored values of one system."""
    if structure is not None:
        rows, columns = structure.coordinates
        return structure.padded(rows, n), structure.padded(columns, n)
    if layout == "bcoo":
        rows, columns = index[0][:, ROW], index[0][:, COLUMN]
    else:
        columns, pointers = index
        if size > MOST_FOLDED:
            pointers = jax.lax.optimization_barrier(pointers)
        begun = jnp.zeros(size, pointers.dtype).at[pointers[1:]].add(1, mode="drop")
        rows = jax.lax.associative_scan(jnp.add, begun)  # XLA's cumsum takes four times as long on a CPU
    inside = (rows < n) & (columns < n)
    return jnp.where(inside, rows, n), jnp.where(inside, columns, n)


def each_system(
    one: Callable[..., Any], axes: tuple[int, int], arrays: tuple[Any, Any], index: Any, layout: str
) -> Any:
    """``one(*arrays, *index)``, for every system of those that have a batch."""
    own_axes = (*axes, *INDEX_AXES[layout])
    mapped = tuple(0 if a.ndim > axis else None for a, axis in zip((*arrays, *index), own_axes, strict=False))
    function = one if all(axis is None for axis in mapped) else jax.vmap(one, in_axes=mapped)
    return function(*arrays, *index)


# Programs on GPUs factor there. They call the host if CuPy, which gpusplu's engines need, is missing, or if the caller
# disables it because JAX may have taken the memory.
ON_DEVICE = os.environ.get("GPUSPLU_JAX_ON_DEVICE") != "0" and find_spec("cupy") is not None


def on_gpus(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The lowering rule of a primitive for GPUs: `rule`, or that of JAX's own callback, which copies to the host."""
    return rule if ON_DEVICE else partial(call_host, getattr(host, name))


def call_host(callback: Callable[..., Any], context: Any, *operands: Any, **parameters: Any) -> Any:
    work, arrays = partial(callback, **parameters), list(operands)
    made, _, _ = mlir.emit_python_callback(
        context, work, None, arrays, context.avals_in, context.avals_out, has_side_effect=False
    )
    return made


def make(name: str, shape_of: Callable[..., Any], on_device: Callable[..., Any]) -> Any:
    """A primitive with results; `on_device` is its lowering rule for GPUs."""
    primitive = Primitive(f"gpusplu_{name}")
    primitive.multiple_results = True
    callback = getattr(host, name)
    primitive.def_impl(partial(evaluate, jax.jit(primitive.bind, static_argnames=STATIC), callback))
    primitive.def_abstract_eval(shape_of)
    mlir.register_lowering(primitive, partial(foreign.lower, foreign.on_host, callback), platform="cpu")
    mlir.register_lowering(primitive, on_device, platform="cuda")
    # By its name, which the documentation finds where JAX is not installed.
    batching.primitive_batchers.__setitem__(primitive, partial(batched, primitive))
    return primitive


def evaluate(
    compiled: Callable[..., Any], callback: Callable[..., Any], *operands: Any, **parameters: Any
) -> list[Any]:
    """Outside of jit, run directly on a CPU; compile on a GPU, because only compiled programs get XLA's stream."""
    first = operands[0]
    if isinstance(first, jax.Array) and Jax().is_on_device(first):
        with jax.disable_jit(False):
            return compiled(*operands, **parameters)
    place = next(iter(first.devices())) if isinstance(first, jax.Array) else None
    return [jax.device_put(array, place) for array in callback(*map(np.asarray, operands), **parameters)]


# ---- shapes


def axes_of(operands: Sequence[Any], structure: Any, layout: str) -> tuple[int, ...]:
    """Axes of operands without a batch."""
    return (VALUES, *(INDEX_AXES[layout] if structure is None else ()), VECTORS)[: len(operands)]


def batch_of(operands: Sequence[Any], structure: Any, layout: str) -> tuple[int, ...]:
    """The shape of the batch that operands have: () or (nbatch,)."""
    axes = axes_of(operands, structure, layout)
    return max((a.shape[: a.ndim - axis] for a, axis in zip(operands, axes, strict=True)), key=len)


def vectors_of(*operands: Any, structure: Any, layout: str, **_: Any) -> list[Any]:
    b = operands[-1]
    return [ShapedArray((*batch_of(operands, structure, layout), *b.shape[-VECTORS:]), b.dtype)]


def scalars_of(values: Any, *index: Any, structure: Any, layout: str, **_: Any) -> list[Any]:
    batch = batch_of((values, *index), structure, layout)
    return [ShapedArray(batch, values.dtype), ShapedArray(batch, np.empty(0, values.dtype).real.dtype)]


def same_shape(values: Any, *index: Any, structure: Any, layout: str, **_: Any) -> list[Any]:
    batch = batch_of((values, *index), structure, layout)
    return [ShapedArray((*batch, *values.shape[-VALUES:]), values.dtype)]


# ---- batches


def batched(
    primitive: Any, operands: Sequence[Any], dims: Sequence[Any], structure: Any, layout: str, **others: Any
) -> tuple[list[Any], list[int]]:
    """vmap: more right-hand sides where only these differ, else more systems."""
    parameters = {"structure": structure, "layout": layout, **others}
    mapped = [dim is not None for dim in dims]
    operands = [jnp.moveaxis(a, d, 0) if m else a for a, d, m in zip(operands, dims, mapped, strict=True)]
    size = operands[mapped.index(True)].shape[0]
    if size == 0:
        ones = [jax.ShapeDtypeStruct(a.shape[m:], a.dtype) for a, m in zip(operands, mapped, strict=True)]
        of_one = jax.eval_shape(partial(primitive.bind, **parameters), *ones)
        return [jnp.zeros((0, *one.shape), one.dtype) for one in of_one], [0] * len(of_one)
    if primitive is solve_p and not any(mapped[:-1]):
        return more_vectors(operands, size, **parameters)
    axes = axes_of(operands, structure, layout)
    inner = max((a.shape[m : a.ndim - axis] for a, m, axis in zip(operands, mapped, axes, strict=True)), key=len)
    unbatched = [a.ndim == axis for a, axis in zip(operands, axes, strict=True)]
    # Indices that are the same for all systems stay so, and then vectors may, too.
    if all(unbatched[1 : len(operands) - (primitive is solve_p)]):
        shared = [False, *unbatched[1:]]
    else:
        shared = [False] * len(operands)
    whole = zip(operands, mapped, axes, shared, strict=True)
    systems = [a if one else spread(a, m, axis, size, inner) for a, m, axis, one in whole]
    results = primitive.bind(*systems, **parameters)
    return [r.reshape(size, *inner, *r.shape[1:]) for r in results], [0] * len(results)


def more_vectors(operands: Sequence[Any], size: int, **parameters: Any) -> tuple[list[Any], list[int]]:
    """Systems of one matrix, or of one batch of matrices, with `size` times as many right-hand sides."""
    *matrix, b = operands
    *batch, k, n = b.shape[1:]
    (x,) = solve_p.bind(*matrix, jnp.moveaxis(b, 0, -3).reshape(*batch, size * k, n), **parameters)
    return [x.reshape(*x.shape[:-2], size, k, n)], [x.ndim - 2]


def spread(array: Any, mapped: bool, axes: int, size: int, inner: tuple[int, ...]) -> Any:
    """One for each of ``size * prod(inner)`` systems."""
    last = array.shape[array.ndim - axes :]
    has_inner = array.ndim - axes > mapped
    array = array.reshape(size if mapped else 1, *(inner if has_inner else (1,) * len(inner)), *last)
    return jnp.broadcast_to(array, (size, *inner, *last)).reshape(-1, *last)


# ---- derivatives

solve_p = make("solve", vectors_of, on_gpus("solve", device.lower_solve))
slogdet_p = make("slogdet", scalars_of, on_gpus("slogdet", device.lower_by_host(host.slogdet)))
selected_p = make("selected", same_shape, on_gpus("selected", device.lower_by_host(host.selected)))


def solve_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, kept: int, **parameters: Any) -> Any:
    *matrix, _ = primals
    dvalues, *_, db = tangents
    (x,) = solve_p.bind(*primals, kept=ADJOINT, **parameters)
    terms = [] if type(db) is ad.Zero else [db]
    if type(dvalues) is not ad.Zero:
        terms.append(-product(dvalues, tuple(matrix[1:]), x, **parameters))
    return [x], solve_p.bind(*matrix, reduce(jnp.add, terms), kept=ADJOINT, **parameters)


def solve_transpose(
    cotangents: Any, values: Any, *others: Any, transpose: bool, kept: int, **parameters: Any
) -> list[Any]:
    *index, b = others
    (g,) = cotangents
    if type(g) is ad.Zero:
        of_b = ad.Zero(b.aval)
    else:
        (of_b,) = solve_p.bind(values, *index, g, transpose=not transpose, kept=SINGLE_USE, **parameters)
        if of_b.ndim > b.aval.ndim:  # a batch shared b
            of_b = of_b.sum(0)
    return [None, *[None] * len(index), of_b]


def slogdet_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, kept: int, **parameters: Any) -> Any:
    """As jax.numpy.linalg.slogdet: the derivative of the logarithm is the trace of ``A^-1 dA``."""
    sign, logarithm = slogdet_p.bind(*primals, kept=ADJOINT, **parameters)
    (inverse,) = selected_p.bind(*primals, **parameters)
    trace = (inverse * tangents[0]).sum(-1)
    of_sign = (trace - trace.real) * sign if jnp.iscomplexobj(trace) else jnp.zeros_like(sign)
    return [sign, logarithm], [of_sign, trace.real]


def selected_jvp(primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> Any:
    values, *index = primals
    return selected_p.bind(*primals, **parameters), [turned(values, tuple(index), tangents[0], **parameters)]


ad.primitive_jvps.update({solve_p: solve_jvp, slogdet_p: slogdet_jvp, selected_p: selected_jvp})
ad.primitive_transposes[solve_p] = solve_transpose
