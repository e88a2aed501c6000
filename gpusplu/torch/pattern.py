"""Patterns and values of torch's sparse tensors."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)

COMPRESSED = (torch.sparse_csr, torch.sparse_csc)


class Pattern:
    """Positions of the entries of a square sparse matrix, without their values.

    Functions of this package take one in place of a sparse tensor, with ``values=``: torch.func and torch.compile know
    no sparse tensors, and torch differentiates them once.

    Parameters
    ----------
    A : Tensor
        Sparse, in CSR, CSC or COO layout, shape (..., n, n).

    Attributes
    ----------
    n : int
    pointers, indices : Tensor, shapes (n + 1,) and (nnz,)
        Of compressed rows or columns.
    by_rows : bool
    origin : tuple of Tensor
        The index tensors that they were made from.

    See Also
    --------
    spsolve, factorized, slogdet

    Examples
    --------
    >>> import torch
    >>> import gpusplu.torch as gst
    >>> A = torch.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=torch.float64).to_sparse_csr().requires_grad_()
    >>> pattern = gst.Pattern(A)
    >>> values = torch.tensor([5.0, 1.0, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    >>> gst.spsolve(pattern, torch.ones(2, dtype=torch.float64), values=values).sum().backward()
    >>> values.grad.shape
    torch.Size([4])
    """

    _coordinates: tuple[Tensor, Tensor] | None
    __slots__ = ("_coordinates", "by_rows", "indices", "n", "origin", "pointers")

    def __init__(self, A: Tensor) -> None:
        if not isinstance(A, Tensor):
            raise TypeError(
                f"A must be a sparse tensor, not {type(A).__name__}; torch.sparse_csr_tensor makes one of SciPy's "
                "indptr, indices and data"
            )
        if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
            raise ValueError(f"A must be a matrix or a batch of matrices that are square, got shape {tuple(A.shape)}")
        self.n, self._coordinates = A.shape[-1], None
        layout = A.layout
        self.by_rows = layout is not torch.sparse_csc
        if layout in COMPRESSED:
            self.pointers, self.indices, _ = compressed(A)
        elif layout is torch.sparse_coo:
            if A.dense_dim():
                raise ValueError("a tensor in COO layout must have no dense dimensions; use torch.stack for a batch")
            where = (A if A.is_coalesced() else A.detach().coalesce()).indices()
            rows, self.indices = where if A.sparse_dim() == 2 else shared_coordinates(where, A.shape[:-2])
            self.pointers = torch._convert_indices_from_coo_to_csr(rows, self.n)
        else:
            raise TypeError(f"A must be a sparse tensor in CSR, CSC or COO layout, not {layout}; use A.to_sparse_csr()")
        if self.indices.ndim > 1:
            self._share()
        self.origin = (where,) if layout is torch.sparse_coo else (self.indices, self.pointers)

    @classmethod
    def of_arrays(cls, pointers: Tensor, indices: Tensor, by_rows: bool) -> Pattern:
        """The pattern of compressed rows or columns."""
        made = cls.__new__(cls)
        made.n, made.pointers, made.indices, made.by_rows = pointers.shape[0] - 1, pointers, indices, by_rows
        made._coordinates, made.origin = None, (indices, pointers)
        return made

    def _share(self) -> None:
        """One pattern for all matrices of a batch."""
        pointers, indices = self.pointers.flatten(0, -2), self.indices.flatten(0, -2)
        if not pointers.shape[0]:
            raise ValueError("A is a batch of no matrices")
        self.pointers, self.indices = pointers[0], indices[0]
        for name, array, first in (("pointers", pointers, self.pointers), ("indices", indices, self.indices)):
            if not torch.equal(array, first.expand_as(array)):
                raise differing(name, int((array != first).any(-1).int().argmax()))

    def coordinates(self) -> tuple[Tensor, Tensor]:
        """Rows and columns of the entries.

        See Also
        --------
        Pattern.tensor

        Examples
        --------
        >>> import torch
        >>> import gpusplu.torch as gst
        >>> A = torch.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=torch.float64).to_sparse_csr().requires_grad_()
        >>> rows, columns = gst.Pattern(A).coordinates()
        >>> rows.tolist(), columns.tolist()
        ([0, 0, 1, 1], [0, 1, 0, 1])
        """
        if self._coordinates is not None:
            return self._coordinates
        major = torch.repeat_interleave(self.pointers.diff(), output_size=self.indices.shape[0])
        found = (major, self.indices) if self.by_rows else (self.indices, major)
        if not torch._C._are_functorch_transforms_active():  # tensors made within a transform must not leave it
            self._coordinates = found
        return found

    def tensor(self, values: Tensor) -> Tensor:
        """The sparse tensor of these values, shape (..., nnz).

        See Also
        --------
        Pattern.coordinates

        Examples
        --------
        >>> import torch
        >>> import gpusplu.torch as gst
        >>> A = torch.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=torch.float64).to_sparse_csr().requires_grad_()
        >>> gst.Pattern(A).tensor(torch.arange(4.0)).to_dense()
        tensor([[0., 1.],
                [2., 3.]])
        """
        batch = values.shape[:-1]
        layout = torch.sparse_csr if self.by_rows else torch.sparse_csc
        pointers, indices = (array.expand(*batch, -1) for array in (self.pointers, self.indices))
        return torch.sparse_compressed_tensor(pointers, indices, values, (*batch, self.n, self.n), layout=layout)

    def __repr__(self) -> str:
        return f"<Pattern of {self.n} x {self.n}, {self.indices.shape[0]} entries, {self.indices.device}>"


def differing(what: str, other: int) -> ValueError:
    """The error for a matrix of a batch with another pattern than the first."""
    return ValueError(
        f"the matrices of a batch must have one pattern: the {what} of matrix {other} are not those of matrix 0; keep "
        "explicit zeros, or solve with each matrix by itself"
    )


def shared_coordinates(where: Tensor, batch: torch.Size) -> Tensor:
    """Rows and columns of the one pattern that a batch of these coordinates has, shape (2, nnz).

    Parameters
    ----------
    where : Tensor, shape (len(batch) + 2, entries)
        Of a tensor that is coalesced, so that the entries of each matrix follow those of the one before.
    batch : torch.Size

    Raises
    ------
    ValueError
        There are no matrices, or their patterns differ.
    """
    count = batch.numel()
    if not count:
        raise ValueError("A is a batch of no matrices")
    number = torch.zeros_like(where[0])
    for size, index in zip(batch, where, strict=False):
        number = number * size + index
    sizes = torch.bincount(number, minlength=count)
    if not torch.equal(sizes, sizes[:1].expand(count)):
        raise differing("number of entries", int((sizes != sizes[0]).int().argmax()))
    places = where[-2:].reshape(2, count, int(sizes[0]))
    first = places[:, :1]
    if not torch.equal(places, first.expand_as(places)):
        raise differing("indices", int((places != first).any(-1).any(0).int().argmax()))
    return first[:, 0].contiguous()


def compressed(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Pointers, indices and values of a tensor in CSR or CSC layout, which torch.func cannot access."""
    with torch._C._DisableFuncTorch() if torch._C._are_functorch_transforms_active() else nullcontext():
        if A.layout is torch.sparse_csr:
            return A.crow_indices(), A.col_indices(), A.values()
        return A.ccol_indices(), A.row_indices(), A.values()


class Entries(torch.autograd.Function):
    """Values of a sparse tensor; torch's values() can be differentiated only once."""

    @staticmethod
    def forward(ctx: Any, A: Tensor) -> Tensor:
        ctx.save_for_backward(A)
        return values_of(A.detach())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (A,) = ctx.saved_tensors
        return Assembled.apply(gradient, A)


class Assembled(torch.autograd.Function):
    """The sparse tensor of the layout and pattern of A that has these values."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, A: Tensor) -> Tensor:
        A = A.detach()
        if A.layout is torch.sparse_coo:
            return torch.sparse_coo_tensor(A.indices(), values.reshape(-1), A.shape, is_coalesced=True)
        return torch.sparse_compressed_tensor(*compressed(A)[:2], values, A.shape, layout=A.layout)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return Entries.apply(gradient), None


def values_of(A: Tensor) -> Tensor:
    """Values of a coalesced tensor in any layout, shape (..., nnz)."""
    if A.layout in COMPRESSED:
        return compressed(A)[2]
    batch, values = A.shape[:-2], A.values()
    return values.reshape(*batch, values.shape[0] // batch.numel()) if batch else values


def entries(A: Tensor) -> Tensor:
    """Values of a sparse tensor, in the order of its `Pattern`."""
    if A.layout is torch.sparse_coo and not A.is_coalesced():
        A = A.coalesce()
    if A.requires_grad and torch.is_grad_enabled():
        return Entries.apply(A)
    return values_of(A)


def read(A: Tensor | Pattern, values: Tensor | None) -> tuple[Pattern, Tensor]:
    """The pattern of `A` and the values to use: those of `A` unless others are given.

    Raises
    ------
    TypeError, ValueError
    """
    pattern = A if isinstance(A, Pattern) else Pattern(A)
    if values is None:
        if isinstance(A, Pattern):
            raise TypeError("A is a Pattern: pass values=")
        values = entries(A)
    elif not isinstance(values, Tensor):
        raise TypeError(f"values must be a tensor, not {type(values).__name__}")
    elif values.ndim == 0 or values.shape[-1] != pattern.indices.shape[0]:
        wanted = f"(..., {pattern.indices.shape[0]}), one for each entry of A"
        raise ValueError(f"values must have shape {wanted}, got {tuple(values.shape)}")
    if 0 in values.shape[:-1]:
        raise ValueError(f"a batch needs at least one system, got values of shape {tuple(values.shape)}")
    if values.dtype not in DTYPES:
        raise TypeError(f"A has values of {values.dtype}; convert them to {', '.join(map(str, DTYPES))}")
    if values.device != pattern.indices.device:
        raise ValueError(f"values are on {values.device} and the pattern of A on {pattern.indices.device}; use .to()")
    if values.device.type not in ("cpu", "cuda"):
        raise TypeError(f"A is on {values.device}; only cpu and cuda work")
    return pattern, values
