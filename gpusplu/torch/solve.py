"""spsolve and factorized for tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..common.rhs import check_trans
from ..errors import require
from . import functions
from .pattern import DTYPES, Pattern, read


def spsolve(A: Tensor | Pattern, b: Tensor, *, values: Tensor | None = None, trans: str = "N") -> Tensor:
    """Solve ``op(A) x = b``, differentiable with respect to the values of `A` and `b`.

    Parameters
    ----------
    A : sparse Tensor or Pattern, shape (n, n) or (..., n, n)
        In CSR, CSC or COO layout; a batch has one pattern.
    b : Tensor, shape (n,) or (n, k); with a batch (n,), (..., n) or (..., n, k)
    values : Tensor, shape (nnz,) or (..., nnz), optional
        In place of those of `A`, in their order. Several for one pattern make a batch.
    trans : {"N", "T", "H"}, optional
        A, its transpose, or its conjugate transpose.

    Returns
    -------
    Tensor
        Of the shape of `b`, or of the batch's and that.

    Raises
    ------
    torch.linalg.LinAlgError
        A matrix is singular.
    TypeError, ValueError
        Shapes, number types or devices do not fit.

    See Also
    --------
    factorized, slogdet

    Examples
    --------
    >>> import torch
    >>> import gpusplu.torch as gst
    >>> A = torch.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=torch.float64).to_sparse_csr().requires_grad_()
    >>> b = torch.ones(2, dtype=torch.float64, requires_grad=True)
    >>> gst.spsolve(A, b).square().sum().backward()
    >>> A.grad.layout, b.grad.shape
    (torch.sparse_csr, torch.Size([2]))
    """
    return factorized(A, values=values)(b, trans)


def factorized(A: Tensor | Pattern, *, values: Tensor | None = None) -> Solver:
    """Factor a matrix, or a batch of them, for solves that can be differentiated.

    Parameters
    ----------
    A, values
        As :func:`spsolve` takes them.

    Returns
    -------
    Solver
        ``solver(b, trans="N")`` solves with the one factor, forwards and backwards.

    Raises
    ------
    torch.linalg.LinAlgError
        A matrix is singular.

    See Also
    --------
    spsolve, Solver

    Examples
    --------
    >>> import torch
    >>> import gpusplu.torch as gst
    >>> A = torch.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=torch.float64).to_sparse_csr().requires_grad_()
    >>> solve = gst.factorized(A)
    >>> x, y = solve(torch.ones(2, dtype=torch.float64)), solve(torch.ones(2, dtype=torch.float64), "T")
    >>> torch.allclose(x, y)
    True
    """
    return Solver(*read(A, values))


class Solver:
    """A factored matrix with solves that torch can differentiate; made by :func:`factorized`.

    See Also
    --------
    factorized

    Examples
    --------
    >>> import torch
    >>> import gpusplu.torch as gst
    >>> A = torch.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=torch.float64).to_sparse_csr().requires_grad_()
    >>> solve = gst.factorized(A)
    >>> solve(torch.ones(2, 3, dtype=torch.float64)).shape
    torch.Size([2, 3])
    """

    __slots__ = ("_factor", "pattern", "values")

    def __init__(self, pattern: Pattern, values: Tensor) -> None:
        self.pattern, self.values = pattern, values
        self._factor = functions.factor_of(pattern, values)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled without the factor, which the pattern cache may share or which has a number in this process only."""
        return restore_solver, (self.pattern, self.values)

    def __copy__(self) -> Solver:
        made = object.__new__(Solver)
        made.pattern, made.values, made._factor = self.pattern, self.values, self._factor
        return made

    def __call__(self, b: Tensor, trans: str = "N") -> Tensor:
        """Solve ``op(A) x = b``; see :func:`spsolve`."""
        check_trans(trans)
        values, b, vectors = fitted(self.values, b, self.pattern.n)
        return functions.solve(values, b, self._factor, self.pattern, trans.upper(), vectors)


def restore_solver(pattern: Any, values: Any) -> Solver:
    """A solver from its parts, factored again.

    Raises
    ------
    ValueError
        The parts do not belong together.
    torch.linalg.LinAlgError
        The matrix is singular.
    """
    require(isinstance(pattern, Pattern) and isinstance(values, Tensor), "a part has the wrong type")
    return Solver(*read(pattern, values))


def fitted(values: Tensor, b: Tensor, n: int) -> tuple[Tensor, Tensor, bool]:
    """Values and right-hand sides of one number type and batch, and whether these are vectors.

    Raises
    ------
    TypeError, ValueError
    """
    if not isinstance(b, Tensor) or b.layout is not torch.strided:
        got = b.layout if isinstance(b, Tensor) else type(b).__name__
        advice = "b.to_dense()" if isinstance(b, Tensor) else "torch.as_tensor(b)"
        raise TypeError(f"b must be a dense tensor, not {got}; use {advice}")
    if b.dtype not in DTYPES:
        raise TypeError(f"b has numbers of {b.dtype}; convert it to {values.dtype}")
    if b.device != values.device:
        raise ValueError(f"A is on {values.device} and b on {b.device}; use b.to({str(values.device)!r})")
    batch = values.shape[:-1]
    vectors = b.ndim == 1 or (bool(batch) and b.ndim == len(batch) + 1)
    rows = b.ndim - (1 if vectors else 2)
    if b.ndim == 0 or b.shape[rows] != n or (b.shape[:rows] != batch and b.ndim > 1):
        takes = f"({n},), {tuple(batch) + (n,)} or {tuple(batch) + (n, 'k')}" if batch else f"({n},) or ({n}, k)"
        raise ValueError(f"b must have shape {takes}, got {tuple(b.shape)}")
    if b.ndim == 1 and batch:
        b = b.expand(*batch, n)
    if b.dtype != values.dtype:
        dtype = torch.promote_types(values.dtype, b.dtype)
        if dtype.to_real() != values.dtype.to_real():
            raise TypeError(f"A is {values.dtype} and b {b.dtype}, which is more precise; convert one of them by .to()")
        values, b = values.to(dtype), b.to(dtype)
    return values, b, vectors
