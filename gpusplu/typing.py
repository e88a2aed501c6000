"""Types of arguments and results, for annotations of code that passes them on.

>>> from gpusplu.typing import Engine
>>> def solver(A, engine: Engine = "auto"):
...     return gs.factorized(A) if engine == "auto" else gs.splu(A, engine=engine).solve
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

#: Engines that come with gpusplu.
BuiltIn: TypeAlias = Literal["cpu", "glu", "sflu", "crisscross", "supernodal"]
#: ``engine=``
Engine: TypeAlias = Literal["auto"] | BuiltIn
#: ``permc_spec=``, as in SciPy.
PermcSpec: TypeAlias = Literal["NATURAL", "MMD_ATA", "MMD_AT_PLUS_A", "COLAMD"]
#: Named orderings.
OrderingName: TypeAlias = Literal["auto", "amd", "nd", "natural"]
#: ``ordering=``
Ordering: TypeAlias = OrderingName | NDArray[np.integer[Any]] | Sequence[int]
#: ``schur=``: numbers of unknowns, or a mask of them.
Unknowns: TypeAlias = NDArray[np.integer[Any]] | NDArray[np.bool_] | Sequence[int]
#: ``pivoting=``
Pivoting: TypeAlias = Literal["auto", "static", "partial"]
#: ``refine=``
Refine: TypeAlias = Literal["auto", "always", "never"]
#: ``precision=``
Precision: TypeAlias = Literal["double", "mixed", "auto"]
#: ``errors=`` of batches.
Errors: TypeAlias = Literal["flag", "raise"]
#: ``trans=``
Trans: TypeAlias = Literal["N", "T", "H"]
Yes: TypeAlias = Literal[True]
No: TypeAlias = Literal[False]
Now: TypeAlias = Literal["now"]
Later: TypeAlias = Literal["later"]
#: ``check=``
Check: TypeAlias = Now | Later
#: ``pattern=`` of `selected_inverse`.
InversePattern: TypeAlias = Literal["A.T", "A", "LU"]
#: ``verbose=``
Verbose: TypeAlias = Literal[0, 1, 2] | bool
#: ``progress=``: whether to show a bar, or a function of phase, work done and total work; None for a bar on terminals.
Progress: TypeAlias = bool | Callable[[str, float, float], object] | None
#: Kinds of factorization.
Kind: TypeAlias = Literal["lu", "cholesky", "ldlt"]


class Visible(TypedDict, total=False):
    """Keywords for logs and progress of a call."""

    verbose: Verbose
    progress: Progress


class Array(Protocol):
    """A dense array of NumPy, CuPy, PyTorch or JAX."""

    @property
    def shape(self) -> Any: ...

    @property
    def dtype(self) -> Any: ...

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


class Sparse(Protocol):
    """A sparse matrix."""

    @property
    def shape(self) -> Any: ...

    def tocsc(self, copy: bool = ...) -> Any: ...


ArrayT = TypeVar("ArrayT", bound=Array)
if TYPE_CHECKING:
    from typing_extensions import TypeVar as WithDefault

    FactorT = WithDefault("FactorT", covariant=True, default=Any)
    BatchT = WithDefault("BatchT", covariant=True, default=Any)
else:
    FactorT, BatchT = TypeVar("FactorT", covariant=True), TypeVar("BatchT", covariant=True)
#: Arrays of a shape unknown to the type checker match this type, in an overload before those of other dimensions.
OfUnknownShape: TypeAlias = np.ndarray[tuple[int, int, int], np.dtype[Any]]
#: Values of one matrix, and of several matrices, one per row.
Vector: TypeAlias = np.ndarray[tuple[int], np.dtype[Any]]
Rows: TypeAlias = np.ndarray[tuple[int, int], np.dtype[Any]]


class Solve(Protocol):
    """Result of `factorized`: ``LUFactor.solve``."""

    @overload
    def __call__(self, rhs: NDArray[Any], /, trans: Trans = "N") -> NDArray[Any]: ...
    @overload
    def __call__(self, rhs: ArrayT, /, trans: Trans = "N") -> ArrayT: ...
