"""Public functions of gpusplu.jax: spsolve, factorized and slogdet."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.sparse import BCOO, BCSR

from ..common.arrays import Jax, type_name
from ..common.rhs import TRANS
from . import device
from .primitives import slogdet_p, solve_p
from .store import AGAIN, SINGLE_USE, STORE
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


class SlogDet(NamedTuple):
    """Result of slogdet, as jax.numpy.linalg names it.

    See Also
    --------
    slogdet

    Examples
    --------
    >>> import jax
    >>> import gpusplu.jax as gsj
    >>> from jax.experimental.sparse import BCSR
    >>> A = BCSR.fromdense(jax.numpy.array([[4.0, 1.0], [1.0, 3.0]]))
    >>> float(gsj.slogdet(A).sign)
    1.0
    """

    sign: Any
    logabsdet: Any


def spsolve(A: Any, b: Any) -> Any:
    """Solve ``A x = b``.

    Parameters
    ----------
    A : BCSR or BCOO, shape (n, n)
        Duplicates are summed, padding is ignored.
    b : array, shape (n,) or (n, k)

    Returns
    -------
    x : array, shape of `b`
        In the dtype that `A` and `b` promote to, at least single precision. NaN if A is singular or not finite.

    Raises
    ------
    TypeError
        `A` is not a sparse matrix of JAX, or `b` is sparse.
    ValueError
        Shapes do not fit.

    See Also
    --------
    factorized, slogdet

    Examples
    --------
    >>> import jax
    >>> import gpusplu.jax as gsj
    >>> from jax.experimental.sparse import BCSR
    >>> A = BCSR.fromdense(jax.numpy.array([[4.0, 1.0], [1.0, 3.0]]))
    >>> def loss(values, b):
    ...     return gsj.spsolve(BCSR((values, A.indices, A.indptr), shape=A.shape), b).sum()
    >>> gradient = jax.jit(jax.grad(loss))(A.data, jax.numpy.ones(2))
    >>> gradient.shape
    (4,)
    """
    return solved(read_matrix(A, "spsolve"), b, "N", kept=SINGLE_USE, caller="spsolve")


def solved(matrix: Matrix, b: Any, trans: str, kept: int, caller: str) -> Any:
    """Solve for a caller's array; a complex array is two right-hand sides of a real matrix."""
    b = read_vectors(b, matrix.n, caller)
    dtype = float_dtype(matrix.values.dtype, b.dtype)
    rows = b.astype(dtype).T.reshape(-1, matrix.n)
    if trans == "H":
        rows = rows.conj()
    split = jnp.iscomplexobj(rows) and not jnp.iscomplexobj(matrix.values)
    if split:
        dtype = jnp.finfo(dtype).dtype
        rows = jnp.concatenate((rows.real, rows.imag))
    if not isinstance(matrix.values, jax.core.Tracer) and matrix.values.dtype == dtype:
        kept = SINGLE_USE  # by the factor that `hold` keeps
    (x,) = solve_p.bind(*matrix.cast(dtype).arrays, rows, transpose=trans != "N", kept=kept, **matrix.static)
    if split:
        x = jax.lax.complex(*jnp.split(x, 2))
    if trans == "H":
        x = x.conj()
    return x.T.reshape(b.shape)


def slogdet(A: Any) -> SlogDet:
    """Sign (or phase) and logarithm of the modulus of the determinant of A.

    Derivatives are those of jax.numpy.linalg.slogdet, by the entries of the inverse on A's pattern; second ones take
    2 n solves.

    Parameters
    ----------
    A : BCSR or BCOO, shape (n, n)

    Returns
    -------
    SlogDet
        Named tuple of `sign` and `logabsdet`; 0 and minus infinity if A is singular, NaN if it is not finite.

    Raises
    ------
    TypeError
        `A` is not a sparse matrix of JAX.

    See Also
    --------
    spsolve

    Examples
    --------
    >>> import jax
    >>> import gpusplu.jax as gsj
    >>> from jax.experimental.sparse import BCSR
    >>> A = BCSR.fromdense(jax.numpy.array([[4.0, 1.0], [1.0, 3.0]]))
    >>> sign, logabsdet = gsj.slogdet(A)
    >>> round(float(sign * jax.numpy.exp(logabsdet)), 3)
    11.0
    """
    matrix = read_matrix(A, "slogdet")
    return SlogDet(*slogdet_p.bind(*matrix.arrays, kept=SINGLE_USE, **matrix.static))


@jax.tree_util.register_pytree_node_class
class Factorized:
    """A matrix for repeated solves; made by :func:`factorized`.

    A pytree of the values of A (and of its index arrays where these are traced): it can be an argument of jitted
    functions, and a carry of loops. Made of concrete arrays it keeps its factor as long as it lives.

    See Also
    --------
    factorized

    Examples
    --------
    >>> import jax
    >>> import gpusplu.jax as gsj
    >>> from jax.experimental.sparse import BCSR
    >>> A = BCSR.fromdense(jax.numpy.array([[4.0, 1.0], [1.0, 3.0]]))
    >>> solve = gsj.factorized(A)
    >>> solve(jax.numpy.ones((2, 3))).shape
    (2, 3)
    """

    def __init__(self, matrix: Matrix):
        self._matrix = matrix

    def __call__(self, b: Any) -> Any:
        """Solve ``A x = b``."""
        return self.solve(b)

    def solve(self, b: Any, trans: str = "N") -> Any:
        """Solve ``op(A) x = b``.

        Parameters
        ----------
        b : array, shape (n,) or (n, k)
        trans : {"N", "T", "H"}, optional
            A, its transpose, or its conjugate transpose.

        Returns
        -------
        x : array, shape of `b`

        Examples
        --------
        >>> import jax
        >>> import gpusplu.jax as gsj
        >>> from jax.experimental.sparse import BCSR
        >>> A = BCSR.fromdense(jax.numpy.array([[4.0, 1.0], [1.0, 3.0]]))
        >>> solve = gsj.factorized(A)
        >>> solve.solve(jax.numpy.ones(2), "T").shape
        (2,)
        """
        if trans not in TRANS:
            raise ValueError("trans must be N, T, or H")
        return solved(self._matrix, b, trans.upper(), kept=AGAIN, caller="factorized")

    def hold(self) -> None:
        """Factor now, unless the values are traced, and keep the factor; a singular matrix has none."""
        matrix = self._matrix
        if matrix.structure is None or isinstance(matrix.values, jax.core.Tracer):
            return
        library, values = Jax(), matrix.values
        try:
            with library.working(values):
                store = device.STORE if library.is_on_device(values) else STORE
                store.hold(matrix.structure, library.array(values), self)
        except RuntimeError:
            pass

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return self._matrix[:2], self._matrix[2:]

    @classmethod
    def tree_unflatten(cls, static: tuple[Any, ...], arrays: tuple[Any, ...]) -> Factorized:
        return cls(Matrix(*arrays, *static))

    def __repr__(self) -> str:
        return f"<Factorized of {self._matrix.n} x {self._matrix.n}>"


def factorized(A: Any) -> Factorized:
    """Return a function that solves ``A x = b``, with A factored beforehand where its arrays are concrete.

    Parameters
    ----------
    A : BCSR or BCOO, shape (n, n)

    Returns
    -------
    Factorized
        Callable; its method `solve` takes ``trans``, too.

    See Also
    --------
    spsolve, Factorized

    Examples
    --------
    >>> import jax
    >>> import gpusplu.jax as gsj
    >>> from jax.experimental.sparse import BCSR
    >>> A = BCSR.fromdense(jax.numpy.array([[4.0, 1.0], [1.0, 3.0]]))
    >>> solve = gsj.factorized(A)
    >>> bool(jax.numpy.allclose(A @ solve(jax.numpy.ones(2)), 1, atol=1e-6))
    True
    """
    made = Factorized(read_matrix(A, "factorized"))
    made.hold()
    return made
