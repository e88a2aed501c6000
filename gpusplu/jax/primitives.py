"""The JAX primitives that sparse solves and their derivatives consist of.

solve, product (with a matrix) and pairs (of two vectors, on A's pattern) are closed under derivatives of any order
(gradients.py has the mathematics; JAX transposes without conjugating). Each is one callback, batches too: vmap adds
right-hand sides of one factor if the matrix is the same for all, else systems of one native batch.

Operands are those of `host`: ``first, *index, second``, where `index` is empty if the parameter `structure` has the
pattern, which then costs nothing per call, and else the traced index arrays. Compiled programs call back through
`foreign`: on a CPU to `host`, on a GPU to `device`, except product and pairs, which consist of JAX's own functions
there: gathers and scatters that XLA fuses. Padding has row and column n, which these functions leave out.
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
from . import device, foreign, host
from .store import ADJOINT, SINGLE_USE
from .structure import COLUMN, ROW, Structure


def by_xla(function: Callable[..., Any]) -> Any:
    """The lowering rule of a primitive that a function of JAX's stands for."""
    return mlir.lower_fun(function, multiple_results=True)


def product(
    values: Any, *others: Any, structure: Structure | None, n: int, layout: str, transpose: bool
) -> tuple[Any, ...]:
    """``op(A) x``, of vectors that are rows."""
    *index, x = others

    def one(values: Any, x: Any, *index: Any) -> Any:
        to, source = coordinates(structure, n, layout, index, values.shape[0])
        if transpose:
            to, source = source, to
        return jnp.zeros_like(x).at[:, to].add(values * taken(x, source), mode="drop")

    return (each_system(one, (1, 2), (values, x), index, layout),)


def pairs(left: Any, *others: Any, structure: Structure | None, n: int, layout: str) -> tuple[Any, ...]:
    """Values ``sum_k left[k, row] * right[k, column]``."""
    *index, right = others
    size = index[0].shape[-1 if layout == "bcsr" else -2] if structure is None else structure.size

    def one(left: Any, right: Any, *index: Any) -> Any:
        rows, columns = coordinates(structure, n, layout, index, size)
        return (taken(left, rows) * taken(right, columns)).sum(0)

    return (each_system(one, (2, 2), (left, right), index, layout),)


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
        rows = jnp.searchsorted(pointers, jnp.arange(size), side="right") - 1
    inside = (rows < n) & (columns < n)
    return jnp.where(inside, rows, n), jnp.where(inside, columns, n)


def each_system(
    one: Callable[..., Any], axes: tuple[int, int], arrays: tuple[Any, Any], index: Any, layout: str
) -> Any:
    """``one(*arrays, *index)``, for every system of those that have a batch."""
    own_axes = (*axes, *((1, 1) if layout == "bcsr" else (2,)))[: 2 + len(index)]
    mapped = tuple(0 if a.ndim > axis else None for a, axis in zip((*arrays, *index), own_axes, strict=True))
    function = one if all(axis is None for axis in mapped) else jax.vmap(one, in_axes=mapped)
    return function(*arrays, *index)


# Axes of an operand without a batch: of values, of vectors, and of the index arrays of each layout.
VALUES, VECTORS = 1, 2
INDEX_AXES = {"bcsr": (1, 1), "bcoo": (2,)}
# Names of parameters.
STATIC = ("structure", "n", "layout", "transpose", "kept")


def index_axes(structure: Any, layout: str) -> tuple[int, ...]:
    """Axes of the index arrays among the operands."""
    return () if structure is not None else INDEX_AXES[layout]


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


def make(name: str, axes: tuple[int, ...], shape_of: Callable[..., Any], on_device: Callable[..., Any]) -> Any:
    """A primitive with results; its operands other than index arrays have this number of `axes` without a batch.

    `on_device` is its lowering rule for GPUs.
    """
    primitive = Primitive(f"gpusplu_{name}")
    primitive.multiple_results = True
    callback = getattr(host, name)
    primitive.def_impl(partial(evaluate, jax.jit(primitive.bind, static_argnames=STATIC), callback))
    primitive.def_abstract_eval(shape_of)
    mlir.register_lowering(primitive, partial(foreign.lower, foreign.on_host, callback), platform="cpu")
    mlir.register_lowering(primitive, on_device, platform="cuda")
    # By its name, which the documentation finds where JAX is not installed.
    batching.primitive_batchers.__setitem__(primitive, partial(batched, primitive, axes))
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


def batch_of(structure: Any, layout: str, axes: tuple[int, ...], operands: Sequence[Any]) -> tuple[int, ...]:
    """The shape of the batch that operands have: () or (nbatch,)."""
    every = axes[0], *index_axes(structure, layout), *axes[1:]
    shapes = {operand.shape[: operand.ndim - axis] for operand, axis in zip(operands, every, strict=True)}
    return max(shapes, key=len)


def vectors_of(values: Any, *others: Any, structure: Any, layout: str, **_: Any) -> list[Any]:
    batch = batch_of(structure, layout, (VALUES, VECTORS), (values, *others))
    return [ShapedArray((*batch, *others[-1].shape[-VECTORS:]), others[-1].dtype)]


def values_of(left: Any, *others: Any, structure: Any, layout: str, **_: Any) -> list[Any]:
    batch = batch_of(structure, layout, (VECTORS, VECTORS), (left, *others))
    size = others[0].shape[-INDEX_AXES[layout][0]] if structure is None else structure.size
    return [ShapedArray((*batch, size), left.dtype)]


def scalars_of(values: Any, *index: Any, structure: Any, layout: str, **_: Any) -> list[Any]:
    batch = batch_of(structure, layout, (VALUES,), (values, *index))
    return [ShapedArray(batch, values.dtype), ShapedArray(batch, np.empty(0, values.dtype).real.dtype)]


def same_shape(values: Any, *others: Any, structure: Any, layout: str, **_: Any) -> list[Any]:
    number = 1 + len(index_axes(structure, layout))
    batch = batch_of(structure, layout, (VALUES,), (values, *others)[:number])
    return [ShapedArray((*batch, *values.shape[-VALUES:]), values.dtype)]


# ---- batches


def batched(
    primitive: Any, axes: tuple[int, ...], operands: Sequence[Any], dims: Sequence[Any], **parameters: Any
) -> tuple[list[Any], list[int]]:
    """vmap: more right-hand sides where only these differ, else more systems."""
    mapped = [dim is not None for dim in dims]
    operands = [jnp.moveaxis(a, d, 0) if m else a for a, d, m in zip(operands, dims, mapped, strict=True)]
    size = operands[mapped.index(True)].shape[0]
    if size == 0:
        ones = [jax.ShapeDtypeStruct(a.shape[m:], a.dtype) for a, m in zip(operands, mapped, strict=True)]
        of_one = jax.eval_shape(partial(primitive.bind, **parameters), *ones)
        return [jnp.zeros((0, *one.shape), one.dtype) for one in of_one], [0] * len(of_one)
    if axes == (VALUES, VECTORS) and not any(mapped[:-1]):
        return more_vectors(primitive, operands, size, **parameters)
    number = len(index_axes(parameters["structure"], parameters["layout"]))
    every = axes[0], *index_axes(parameters["structure"], parameters["layout"]), *axes[1:]
    inner = max((a.shape[m : a.ndim - axis] for a, m, axis in zip(operands, mapped, every, strict=True)), key=len)
    unbatched = [a.ndim == axis for a, axis in zip(operands, every, strict=True)]
    # Indices that are the same for all systems stay so, and then vectors may, too.
    share_index = all(unbatched[1 : 1 + number])
    share = [False, *[share_index] * number, *[share_index and axes == (VALUES, VECTORS)] * (len(axes) - 1)]
    whole = zip(operands, mapped, every, unbatched, share, strict=True)
    systems = [a if one and shared else spread(a, m, axis, size, inner) for a, m, axis, one, shared in whole]
    results = primitive.bind(*systems, **parameters)
    return [r.reshape(size, *inner, *r.shape[1:]) for r in results], [0] * len(results)


def more_vectors(primitive: Any, operands: Sequence[Any], size: int, **parameters: Any) -> tuple[list[Any], list[int]]:
    """Systems of one matrix, or of one batch of matrices, with `size` times as many right-hand sides."""
    *matrix, b = operands
    *batch, k, n = b.shape[1:]
    (x,) = primitive.bind(*matrix, jnp.moveaxis(b, 0, -3).reshape(*batch, size * k, n), **parameters)
    return [x.reshape(*x.shape[:-2], size, k, n)], [x.ndim - 2]


def spread(array: Any, mapped: bool, axes: int, size: int, inner: tuple[int, ...]) -> Any:
    """One for each of ``size * prod(inner)`` systems."""
    last = array.shape[array.ndim - axes :]
    has_inner = array.ndim - axes > mapped
    array = array.reshape(size if mapped else 1, *(inner if has_inner else (1,) * len(inner)), *last)
    return jnp.broadcast_to(array, (size, *inner, *last)).reshape(-1, *last)


# ---- derivatives

solve_p = make("solve", (VALUES, VECTORS), vectors_of, on_gpus("solve", device.lower_solve))
product_p = make("product", (VALUES, VECTORS), vectors_of, by_xla(product))
pairs_p = make("pairs", (VECTORS, VECTORS), values_of, by_xla(pairs))
slogdet_p = make("slogdet", (VALUES,), scalars_of, on_gpus("slogdet", device.lower_by_host(host.slogdet)))
selected_p = make("selected", (VALUES,), same_shape, on_gpus("selected", device.lower_by_host(host.selected)))
turned_p = make("turned", (VALUES, VALUES), same_shape, on_gpus("turned", device.lower_by_host(host.turned)))


def solve_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, kept: int, **parameters: Any) -> Any:
    *matrix, _ = primals
    dvalues, *_, db = tangents
    (x,) = solve_p.bind(*primals, kept=ADJOINT, **parameters)
    terms = [] if type(db) is ad.Zero else [db]
    if type(dvalues) is not ad.Zero:
        terms.append(-product_p.bind(dvalues, *matrix[1:], x, **parameters)[0])
    return [x], solve_p.bind(*matrix, reduce(jnp.add, terms), kept=ADJOINT, **parameters)


def bilinear_jvp(primitive: Any, primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> Any:
    first, *index, second = primals
    dfirst, *_, dsecond = tangents
    (out,) = primitive.bind(*primals, **parameters)
    terms = []
    if type(dfirst) is not ad.Zero:
        terms += primitive.bind(dfirst, *index, second, **parameters)
    if type(dsecond) is not ad.Zero:
        terms += primitive.bind(first, *index, dsecond, **parameters)
    return [out], [reduce(jnp.add, terms)]


def bilinear_transpose(
    first_of: Callable[..., Any] | None,
    second_of: Callable[..., Any],
    cotangents: Any,
    first: Any,
    *others: Any,
    **how: Any,
) -> Any:
    """Cotangents of operands in two of which a primitive is linear: the one that is not known, by a function of the
    result's cotangent, the index arrays and the known one. Without `first_of` the primitive is linear in the second."""
    *index, second = others
    (g,) = cotangents
    made_by: Any = second_of
    wanted, known = second, first
    if ad.is_undefined_primal(first):
        wanted, made_by, known = first, first_of, second
    made = ad.Zero(wanted.aval) if type(g) is ad.Zero else like_operand(made_by(g, index, known, **how), wanted.aval)
    return [made if operand is wanted else None for operand in (first, *index, second)]


def vectors_of_solve(
    g: Any, index: Sequence[Any], values: Any, *, transpose: bool, kept: int, **parameters: Any
) -> Any:
    return solve_p.bind(values, *index, g, transpose=not transpose, kept=SINGLE_USE, **parameters)[0]


def values_of_turned(g: Any, index: Sequence[Any], values: Any, **parameters: Any) -> Any:
    """It is its own transpose: its product with another tangent is a trace of ``A^-1 dA A^-1 dA``, minus."""
    return turned_p.bind(values, *index, g, **parameters)[0]


def values_of_product(g: Any, index: Sequence[Any], x: Any, *, transpose: bool, **parameters: Any) -> Any:
    x = jnp.broadcast_to(x, g.shape)
    left, right = (x, g) if transpose else (g, x)
    return pairs_p.bind(left, *index, right, **parameters)[0]


def vectors_of_product(g: Any, index: Sequence[Any], values: Any, *, transpose: bool, **parameters: Any) -> Any:
    return product_p.bind(values, *index, g, transpose=not transpose, **parameters)[0]


def vectors_of_pairs(transpose: bool, g: Any, index: Sequence[Any], vectors: Any, **parameters: Any) -> Any:
    return product_p.bind(g, *index, vectors, transpose=transpose, **parameters)[0]


def like_operand(g: Any, aval: Any) -> Any:
    """The cotangent of an operand: of one that a batch shared, the sum over the systems."""
    return g if g.ndim == aval.ndim else g.sum(0)


def slogdet_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, kept: int, **parameters: Any) -> Any:
    """As jax.numpy.linalg.slogdet: the derivative of the logarithm is the trace of ``A^-1 dA``."""
    sign, logarithm = slogdet_p.bind(*primals, kept=ADJOINT, **parameters)
    (inverse,) = selected_p.bind(*primals, **parameters)
    trace = (inverse * tangents[0]).sum(-1)
    turned = (trace - trace.real) * sign if jnp.iscomplexobj(trace) else jnp.zeros_like(sign)
    return [sign, logarithm], [turned, trace.real]


def selected_jvp(primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> Any:
    return selected_p.bind(*primals, **parameters), turned_p.bind(*primals, tangents[0], **parameters)


def turned_jvp(primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> Any:
    *matrix, _ = primals
    if type(tangents[0]) is not ad.Zero:
        raise NotImplementedError("gpusplu.jax.slogdet has first and second derivatives only")
    return turned_p.bind(*primals, **parameters), turned_p.bind(*matrix, tangents[-1], **parameters)


ad.primitive_jvps.update(
    {
        solve_p: solve_jvp,
        product_p: partial(bilinear_jvp, product_p),
        pairs_p: partial(bilinear_jvp, pairs_p),
        slogdet_p: slogdet_jvp,
        selected_p: selected_jvp,
        turned_p: turned_jvp,
    }
)
ad.primitive_transposes.update(
    {
        solve_p: partial(bilinear_transpose, None, vectors_of_solve),
        product_p: partial(bilinear_transpose, values_of_product, vectors_of_product),
        pairs_p: partial(bilinear_transpose, partial(vectors_of_pairs, False), partial(vectors_of_pairs, True)),
        turned_p: partial(bilinear_transpose, None, values_of_turned),
    }
)
