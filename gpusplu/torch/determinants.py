"""Sign and logarithm of determinants, differentiable: with entries of the inverse on A's pattern, not a dense one."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.forward_ad import _set_fwd_grad_enabled, unpack_dual

from ..common.rhs import UNITS_PER_SOLVE
from ..factors.gradients import Factored
from . import functions, native, operators
from .functions import save, saved
from .operators import weight_of
from .pattern import Pattern, read


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
    factor = functions.factor_of(pattern, values, singular=True)
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

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], values: Tensor, factor: Any, pattern: Pattern) -> Any:
        return Determinant.apply(values.movedim(in_dims[0], 0), factor, pattern), (0, 0)


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

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], values: Tensor, factor: Any, pattern: Pattern) -> Any:
        return AdjointInverse.apply(values.movedim(in_dims[0], 0), factor, pattern), 0


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
        x = functions.solve(values, x, factor, pattern, "H", False)
        x = functions.product(pattern, middle, x, "H", False)
        x = functions.solve(values, x, factor, pattern, "H", False)
        entries = order[first_of[block] : first_of[block + 1]]
        blocks.append(x[..., rows[entries], columns[entries] - first])
    return torch.cat(blocks, -1)[..., order.argsort()]
