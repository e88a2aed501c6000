"""Conversion of BCSR and BCOO matrices and right-hand sides to operands of the primitives."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.sparse import BCOO, BCSR

from ..common.arrays import type_name
from .structure import Structure

# Libraries of arrays that are no right-hand sides here, though they convert to NumPy's.
OTHERS = ("torch", "cupy", "tensorflow")
LAYOUTS = {BCSR: "bcsr", BCOO: "bcoo"}


class Matrix(NamedTuple):
    """A square matrix: its values, traced index arrays (none where `structure` has them), and what is static."""

    values: Any
    indices: tuple[Any, ...]
    n: int
    layout: str
    structure: Structure | None

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self.values, *self.indices

    @property
    def static(self) -> dict[str, Any]:
        return {"structure": self.structure, "n": self.n, "layout": self.layout}

    def cast(self, dtype: Any) -> Matrix:
        return self._replace(values=self.values.astype(dtype))


def read_matrix(A: Any, caller: str) -> Matrix:
    """A matrix in a floating-point dtype that gpusplu factors.

    Raises
    ------
    TypeError
        `A` is not a BCSR or BCOO matrix.
    ValueError
        It is not square, or has batch or dense dimensions.
    """
    if type(A) not in LAYOUTS:
        raise TypeError(
            f"gpusplu.jax.{caller}: A must be a BCSR or BCOO matrix of jax.experimental.sparse, got "
            f"{type(A).__module__}.{type(A).__name__}; BCSR.fromdense and BCSR.from_scipy_sparse make one"
        )
    if A.n_batch or A.n_dense or len(A.shape) != 2:
        raise ValueError(
            f"gpusplu.jax.{caller}: A has {A.n_batch} batch and {A.n_dense} dense dimensions; use jax.vmap for batches"
        )
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"matrix must be square (has shape {A.shape})")
    values = jnp.asarray(A.data)
    index: tuple[Any, ...] = (A.indices, A.indptr) if type(A) is BCSR else (A.indices,)
    layout = LAYOUTS[type(A)]
    structure = None
    if not any(isinstance(array, jax.core.Tracer) for array in index):
        structure, index = Structure(A.shape[0], layout, tuple(map(np.asarray, index))), ()
    return Matrix(values.astype(float_dtype(values.dtype)), index, A.shape[0], layout, structure)


def float_dtype(*dtypes: Any) -> Any:
    """Dtype of computations with numbers of these dtypes: at least single precision."""
    dtype = jnp.result_type(*dtypes)
    if not jnp.issubdtype(dtype, jnp.inexact):
        dtype = jnp.result_type(float)
    return jnp.promote_types(dtype, jnp.float32)


def read_vectors(b: Any, n: int, caller: str) -> Any:
    """A right-hand side as a JAX array, shape (n,) or (n, k).

    Raises
    ------
    TypeError
        `b` is sparse, or an array of another library.
    ValueError
        It has another shape.
    """
    if not hasattr(b, "__array__") and not isinstance(b, jax.core.Tracer):
        raise TypeError(
            f"gpusplu.jax.{caller}: b must be an array, got {type(b).__name__}; of a sparse one, pass b.todense()"
        )
    if type(b).__module__.partition(".")[0] in OTHERS:  # JAX would take what can be read on the host, gradients lost
        raise TypeError(f"gpusplu.jax.{caller}: got a matrix of JAX and {type_name(b)}; pass jax.numpy.from_dlpack(b)")
    b = jnp.asarray(b)
    if b.ndim not in (1, 2) or b.shape[0] != n:
        raise ValueError(f"matrix - rhs dimension mismatch ({(n, n)} - {b.shape}): b must have shape (n,) or (n, k)")
    return b
