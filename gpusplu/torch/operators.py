"""The same functions as operators of torch, which torch.compile includes without graph breaks.

Compiled graphs hold tensors only, so a factor passes from forward to backward as a handle, a tensor with memory that
keeps the factor alive (native.py). Derivatives are of first order in reverse mode, as in torch.compile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..factors.gradients import ADJOINT, outer
from . import native
from .pattern import Pattern

pattern_of = Pattern.of_arrays


@torch.library.custom_op("gpusplu::factor", mutates_args=())
def factor(values: Tensor, pointers: Tensor, indices: Tensor, by_rows: bool, singular: bool) -> Tensor:
    """Handle of a factor."""
    return native.handle_of(native.factored(pattern_of(pointers, indices, by_rows), values, singular))


@factor.register_fake
def _(values: Tensor, pointers: Tensor, indices: Tensor, by_rows: bool, singular: bool) -> Tensor:
    return torch.empty(1, dtype=torch.int64)


@torch.library.custom_op("gpusplu::solve", mutates_args=())
def solve(
    values: Tensor, b: Tensor, handle: Tensor, pointers: Tensor, indices: Tensor, by_rows: bool, op: str, vectors: bool
) -> Tensor:
    """The solution of ``op(A) x = b``, C-contiguous."""
    pattern = pattern_of(pointers, indices, by_rows)
    return native.solve(native.factored_of(handle, pattern, values), b, op, vectors).contiguous()


@solve.register_fake
def _(values: Tensor, b: Tensor, *_: Any) -> Tensor:
    return torch.empty(b.shape, dtype=b.dtype, device=b.device)


def keep_solve(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    values, _, handle, pointers, indices, *ctx.rest = inputs
    ctx.save_for_backward(values, output, handle, pointers, indices)


def backward_of_solve(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    values, x, handle, pointers, indices = ctx.saved_tensors
    by_rows, op, vectors = ctx.rest
    y = solve(values, gradient, handle, pointers, indices, by_rows, ADJOINT[op], vectors)
    rows, columns = pattern_of(pointers, indices, by_rows).coordinates()
    of_values = -outer(op, rows, columns, y, x, vectors) if ctx.needs_input_grad[0] else None
    return of_values, y, *[None] * 6


solve.register_autograd(backward_of_solve, setup_context=keep_solve)


@torch.library.custom_op("gpusplu::slogdet", mutates_args=())
def slogdet(values: Tensor, handle: Tensor, pointers: Tensor, indices: Tensor, by_rows: bool) -> tuple[Tensor, Tensor]:
    """Sign and logarithm of the modulus of determinants."""
    return native.slogdet(native.factored_of(handle, pattern_of(pointers, indices, by_rows), values), values)


@slogdet.register_fake
def _(values: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    sign = values.new_empty(values.shape[:-1])
    return sign, torch.empty_like(sign.real)


@torch.library.custom_op("gpusplu::adjoint_inverse", mutates_args=())
def adjoint_inverse(values: Tensor, handle: Tensor, pointers: Tensor, indices: Tensor, by_rows: bool) -> Tensor:
    """Entries of the conjugate transpose of the inverse where A has its own."""
    pattern = pattern_of(pointers, indices, by_rows)
    return native.adjoint_inverse(native.factored_of(handle, pattern, values), pattern, values)


@adjoint_inverse.register_fake
def _(values: Tensor, *_: Any) -> Tensor:
    return torch.empty(values.shape, dtype=values.dtype, device=values.device)


def keep_slogdet(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    values, handle, pointers, indices, ctx.by_rows = inputs
    ctx.save_for_backward(values, output[0], handle, pointers, indices)


def backward_of_slogdet(ctx: Any, of_sign: Tensor, of_logabsdet: Tensor) -> tuple[Tensor | None, ...]:
    values, sign, handle, pointers, indices = ctx.saved_tensors
    inverse = adjoint_inverse(values, handle, pointers, indices, ctx.by_rows)
    return inverse * weight_of(sign, of_sign, of_logabsdet).unsqueeze(-1), *[None] * 4


def weight_of(sign: Tensor, of_sign: Tensor, of_logabsdet: Tensor) -> Tensor:
    """Factor of the conjugate transpose of the inverse in the gradient of a determinant's parts."""
    if not sign.is_complex():
        return of_logabsdet
    return torch.complex(of_logabsdet, -(of_sign.conj() * sign).imag)


slogdet.register_autograd(backward_of_slogdet, setup_context=keep_slogdet)


# ---- batches that torch.func maps over


def mapped_solve(
    solve: Callable[..., Tensor], size: int, in_dims: tuple[Any, ...], values: Tensor, b: Tensor, *how: Any
) -> tuple[Tensor, int]:
    """Solutions of `size` systems, and the dimension that counts them; `how` ends with `vectors`."""
    (of_values, of_b), (*rest, vectors) = in_dims[:2], how
    if of_values is not None:
        b = b.expand(size, *b.shape) if of_b is None else b.movedim(of_b, 0)
        return solve(values.movedim(of_values, 0), b, *rest, vectors), 0
    b = b.movedim(of_b, -1)  # one matrix: more right-hand sides
    columns = b.shape[-1:] if vectors else b.shape[-2:]
    x = solve(values, b if vectors else b.flatten(-2), *rest, False)
    return x.unflatten(-1, columns), x.ndim - vectors


@solve.register_vmap
def _(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Tensor, int]:
    def of_contiguous(values: Tensor, b: Tensor, *how: Any) -> Tensor:
        return solve(values.contiguous(), b.contiguous(), *how)

    return mapped_solve(of_contiguous, info.batch_size, in_dims, *inputs)


def mapped(operator: Any, out_dims: Any, info: Any, in_dims: tuple[Any, ...], values: Tensor, *others: Any) -> Any:
    return operator(values.movedim(in_dims[0], 0).contiguous(), *others), out_dims


for operator, out_dims in ((factor, None), (slogdet, (0, 0)), (adjoint_inverse, 0)):
    operator.register_vmap(partial(mapped, operator, out_dims))
