"""Differentiable functions of the values of a sparse matrix: the rules, in terms of each other.

A factor is handed over as an object or, where torch.func takes tensors only, by its handle. Every rule is a composition
of differentiable functions, so derivatives of any order follow. Those of determinants need entries of
the inverse on A's pattern, not a dense one.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.autograd.forward_ad import _set_fwd_grad_enabled, unpack_dual

from ..common.rhs import UNITS_PER_SOLVE
from ..factors.gradients import ADJOINT, Factored, outer
from . import native, operators
from .operators import weight_of
from .pattern import Pattern, read


def product(pattern: Pattern, values: Tensor, x: Tensor, op: str, vectors: bool) -> Tensor:
    """``op(A) x``."""
    to, source = pattern.coordinates()
    if op in "TH":
        to, source = source, to
    if op in "HC":
        values = values.conj()
    dim = -1 if vectors else -2
    terms = x.index_select(dim, source) * (values if vectors else values.unsqueeze(-1))
    return torch.zeros_like(x + terms.new_zeros(())).index_add(dim, to, terms)


class Factor(torch.autograd.Function):
    """Handle of the factor of a matrix, or of a batch of them."""

    @staticmethod
    def forward(values: Tensor, pattern: Pattern, singular: bool) -> Tensor:
        return native.handle_of(native.factored(pattern, values, singular))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, _: Any) -> tuple[None, ...]:
        return None, None, None

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> None:
        return None


class Solve(torch.autograd.Function):
    """The solution of ``op(A) x = b`` by a factor of A.

    Shapes: values (..., nnz), b (..., n) or, unless `vectors`, (..., n, k).
    """

    @staticmethod
    def forward(
        values: Tensor, b: Tensor, factor: Tensor | Factored, pattern: Pattern, op: str, vectors: bool
    ) -> Tensor:
        return native.solve(native.factored_of(factor, pattern, values), b, op, vectors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        values, _, factor, *ctx.rest = inputs
        save(ctx, factor, values, output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        values, x, factor = saved(ctx)
        pattern, op, vectors = ctx.rest
        y = solve(values, gradient, factor, pattern, ADJOINT[op], vectors)
        of_values = None
        if ctx.needs_input_grad[0]:
            rows, columns = pattern.coordinates()
            of_values = -outer(op, rows, columns, y, x, vectors)
        return of_values, y, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, of_values: Tensor | None, of_b: Tensor | None, *_: Any) -> Tensor:
        values, x, factor = saved(ctx)
        pattern, op, vectors = ctx.rest
        with _set_fwd_grad_enabled(True):  # torch has turned it off, for outer levels too: jvp of jvp would be wrong
            values, x = unpack_dual(values).primal, unpack_dual(x).primal
            right = None if of_values is None else -product(pattern, of_values, x, op, vectors)
            right = of_b if right is None else right if of_b is None else right + of_b
            return solve(values, right, factor, pattern, op, vectors)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Tensor, int]:
        return operators.mapped_solve(solve, info.batch_size, in_dims, *inputs)


class PlainSolve(Solve):
    """The same without torch.func, which takes torch twice as long."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        x = Solve.forward(*inputs)
        Solve.setup_context(ctx, inputs, x)
        return x

    setup_context = torch.autograd.function._SingleLevelFunction.setup_context


def save(ctx: Any, factor: Tensor | Factored, *tensors: Tensor) -> None:
    """Keep a factor and tensors for derivatives."""
    ctx.factor = None if isinstance(factor, Tensor) else factor
    tensors = (*tensors, factor) if isinstance(factor, Tensor) else tensors
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)


def saved(ctx: Any) -> tuple[Any, ...]:
    """The kept tensors, followed by the factor."""
    return ctx.saved_tensors if ctx.factor is None else (*ctx.saved_tensors, ctx.factor)


def solve_batched(values: Tensor, b: Tensor, *how: Any) -> Tensor:
    """`solve` for tensors of the batches that torch.autograd makes (``jacobian(..., vectorize=True)``,
    ``check_batched_grad=True``): they support only torch's own rules, so they are unpacked here."""
    level = torch._C._vmapmode_increment_nesting() - 1
    torch._C._vmapmode_decrement_nesting()
    parts, dims = [], []
    for tensor in (values, b):
        batched = is_batched(tensor)
        parts.append(torch._remove_batch_dim(tensor, level, 1, 0) if batched else tensor)
        dims.append(0 if batched else None)
    size = parts[dims.index(0)].shape[0]
    x, dim = operators.mapped_solve(solve, size, tuple(dims), *parts, *how)
    x = x.movedim(dim, 0).contiguous()  # torch requires the batch to be the first dimension in memory
    return torch._add_batch_dim(x, 0, level)


def is_batched(tensor: Tensor) -> bool:
    """Whether it is of such a batch; those of torch.func are others."""
    return bool(torch._C._functorch.is_legacy_batchedtensor(tensor))


def solve(values: Tensor, b: Tensor, factor: Any, pattern: Pattern, op: str, vectors: bool) -> Tensor:
    """The solution of ``op(A) x = b``, differentiable if gradients are required."""
    if torch.compiler.is_compiling():
        arrays = pattern.pointers, pattern.indices, pattern.by_rows
        return operators.solve(values, b, factor, *arrays, op, vectors)
    if torch._C._are_functorch_transforms_active():
        return Solve.apply(values, b, factor, pattern, op, vectors)
    if is_batched(b) or is_batched(values):
        return solve_batched(values, b, factor, pattern, op, vectors)
    wanted = torch.is_grad_enabled() and (values.requires_grad or b.requires_grad)
    if wanted or forward_ad._current_level >= 0:
        return PlainSolve.apply(values, b, factor, pattern, op, vectors)
    return native.solve(native.factored_of(factor, pattern, values), b, op, vectors)


def factor_of(pattern: Pattern, values: Tensor, singular: bool = False) -> Any:
    """A factor, as `solve` takes it."""
    if torch.compiler.is_compiling():
        arrays = pattern.pointers, pattern.indices, pattern.by_rows
        return operators.factor(values.detach(), *arrays, singular)
    if torch._C._are_functorch_transforms_active():
        return Factor.apply(values.detach(), pattern, singular)
    return native.factored(pattern, values, singular)


class SlogDet(NamedTuple):
    """Result of slogdet, as torch.linalg.slogdet names it.

    See Also
    --------
    slogdet

    Examples
    --------
    >>> import torch
    >>> import gpusplu.torch as gst
    >>> A = torch.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=torch.float64).to_sparse_csr().requires_grad_()
    >>> gst.slogdet(A).sign.item()
    1.0
    """

    sign: Tensor
    logabsdet: Tensor


def slogdet(A: Tensor | Pattern, *, values: Tensor | None = None) -> SlogDet:
    """Sign (or phase) and logarithm of the modulus of the determinant of `A`, differentiable.

    A gradient costs about two factorizations: entries of the inverse on A's pattern by the recurrence of Takahashi,
    Fagan and Chen. Second derivatives cost 2 n solves.

    Parameters
    ----------
    A, values
        As :func:`spsolve` takes them.

    Returns
    -------
    SlogDet
        Named tuple of `sign` and `logabsdet`, each of the shape of the batch; 0 and minus infinity where `A` is
        singular, which has no gradient.

    See Also
    --------
    spsolve

    Examples
    --------
    >>> import torch
    >>> import gpusplu.torch as gst
    >>> A = torch.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=torch.float64).to_sparse_csr().requires_grad_()
    >>> sign, logabsdet = gst.slogdet(A)
    >>> logabsdet.backward()
    >>> round((sign * logabsdet.exp()).item(), 6)
    11.0
    """
    pattern, values = read(A, values)
    factor = factor_of(pattern, values, singular=True)
    if torch.compiler.is_compiling():
        return SlogDet(*operators.slogdet(values, factor, pattern.pointers, pattern.indices, pattern.by_rows))
    return SlogDet(*Determinant.apply(values, factor, pattern))


class Determinant(torch.autograd.Function):
    """Sign and logarithm of the modulus of the determinant, for values (..., nnz)."""

    @staticmethod
    def forward(values: Tensor, factor: Tensor | Factored, pattern: Pattern) -> tuple[Tensor, Tensor]:
        return native.slogdet(native.factored_of(factor, pattern, values), values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        values, factor, ctx.pattern = inputs
        save(ctx, factor, values, output[0])

    @staticmethod
    def backward(ctx: Any, of_sign: Tensor, of_logabsdet: Tensor) -> tuple[Tensor, None, None]:
        values, sign, factor = saved(ctx)
        inverse = AdjointInverse.apply(values, factor, ctx.pattern)
        return inverse * weight_of(sign, of_sign, of_logabsdet).unsqueeze(-1), None, None

    @staticmethod
    def jvp(ctx: Any, of_values: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
        values, sign, factor = saved(ctx)
        with _set_fwd_grad_enabled(True):
            values, sign = unpack_dual(values).primal, unpack_dual(sign).primal
            trace = (AdjointInverse.apply(values, factor, ctx.pattern).conj() * of_values).sum(-1)
            if not values.is_complex():
                return torch.zeros_like(sign), trace
            return 1j * trace.imag * sign, trace.real.clone()


class AdjointInverse(torch.autograd.Function):
    """Entries of the conjugate transpose of the inverse where A has its own, shape (..., nnz)."""

    @staticmethod
    def forward(values: Tensor, factor: Tensor | Factored, pattern: Pattern) -> Tensor:
        return native.adjoint_inverse(native.factored_of(factor, pattern, values), pattern, values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        values, factor, ctx.pattern = inputs
        save(ctx, factor, values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        values, factor = saved(ctx)
        return -between_inverses(values, gradient, factor, ctx.pattern), None, None

    @staticmethod
    def jvp(ctx: Any, of_values: Tensor, *_: Any) -> Tensor:
        values, factor = saved(ctx)
        with _set_fwd_grad_enabled(True):
            return -between_inverses(unpack_dual(values).primal, of_values, factor, ctx.pattern)


for function, out_dims in ((Factor, None), (Determinant, (0, 0)), (AdjointInverse, 0)):
    function.vmap = staticmethod(partial(operators.mapped, function.apply, out_dims))


def between_inverses(values: Tensor, middle: Tensor, factor: Any, pattern: Pattern) -> Tensor:
    """Entries of ``A^-H M^H A^-H`` where A has its own, for M with the values `middle` on A's pattern.

    This is the derivative of -A^-H in the direction M, and its own adjoint.
    """
    rows, columns = pattern.coordinates()
    n, batch = pattern.n, values.shape[:-1]
    order = columns.argsort(stable=True)
    begins = torch.arange(0, n + UNITS_PER_SOLVE, UNITS_PER_SOLVE, device=columns.device)
    first_of = torch.searchsorted(columns[order], begins).tolist()
    blocks = []
    for block, first in enumerate(range(0, n, UNITS_PER_SOLVE)):
        identity = torch.eye(n, dtype=values.dtype, device=values.device)[:, first : first + UNITS_PER_SOLVE]
        x = identity.expand(*batch, *identity.shape)
        x = solve(values, x, factor, pattern, "H", False)
        x = product(pattern, middle, x, "H", False)
        x = solve(values, x, factor, pattern, "H", False)
        entries = order[first_of[block] : first_of[block + 1]]
        blocks.append(x[..., rows[entries], columns[entries] - first])
    return torch.cat(blocks, -1)[..., order.argsort()]
