"""Keyword arguments of splu, cholesky and ldlt, checked once and passed on as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter, index, is_
from typing import Any, get_args

import numpy as np

from .. import _core
from ..typing import Ordering, Pivoting, Precision, Refine

ORDERINGS: tuple[str, ...] = _core.ORDERINGS
PIVOTINGS: tuple[str, ...] = get_args(Pivoting)
REFINEMENTS: tuple[str, ...] = get_args(Refine)
SYMBOLIC_PHASES = ("host", "device")
PRECISIONS: tuple[str, ...] = get_args(Precision)

# Diagonal entries this much smaller than the largest of their column are accepted as pivots unless the caller says
# otherwise (KLU's default is 1e-3, UMFPACK's 0.1).
PIVOT_THRESHOLD = 0.1


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}={value!r} is not one of {', '.join(map(repr, allowed))}")
    return value


@dataclass(frozen=True, slots=True)
class Options:
    """Options of analysis and factorization.

    Attributes
    ----------
    ordering : {"auto", "amd", "nd", "natural"}
        Column ordering; unused where `perm` is given.
    perm : ndarray of int32, shape (n,), or None
        The caller's own column order, gather.
    pivoting : {"auto", "static", "partial"}
    refine : {"auto", "always", "never"}
    pivot_threshold : float
        A diagonal entry is a pivot if it is at least this fraction of the largest entry of its column.
    matching : bool
        Permute large entries to the diagonal first.
    symbolic : {"host", "device"}
        Where the pattern of the factors is computed.
    hermitian : bool
        A matrix that is factored from one triangle equals its conjugate transpose, else its transpose.
    precision : {"double", "mixed", "auto"}
        Precision of the factor of a matrix in double precision: "mixed" is single. "auto" until a device engine is
        chosen, and on the processor, where it means double.
    symmetric : bool
        LU may use LDL^T if A is symmetric or Hermitian, because no option prescribes how LU works.
    """

    ordering: str = "auto"
    perm: np.ndarray | None = None
    pivoting: str = "auto"
    refine: str = "auto"
    pivot_threshold: float = PIVOT_THRESHOLD
    matching: bool = True
    symbolic: str = "host"
    hermitian: bool = True
    precision: str = "double"
    symmetric: bool = False


#: The options that an analysis depends on, except the permutation. The threshold is not one: every call chooses pivots
#: among its values again.
options_of_analysis = attrgetter(*(name for name in Options.__slots__ if name not in ("perm", "pivot_threshold")))


def may_reuse_analysis(kind: str, options: Options) -> bool:
    """Whether other values may use an analysis: not if pivots that were chosen for others would not be checked."""
    return kind == "cholesky" or (options.pivoting != "static" and options.refine != "never")


# Default arguments of lu_options after the order of the matrix, and their result.
DEFAULTS = (None, None, None, None, None, "auto", "auto", "auto", "double")
DEFAULT_OPTIONS = Options(symmetric=True)
#: SuperLU's orderings by its names and numbers, except the natural one. gpusplu chooses its own ordering for them.
ORDERINGS_OF_SUPERLU = frozenset(("COLAMD", "MMD_ATA", "MMD_AT_PLUS_A", 1, 2, 3))


def read_ordering(ordering: Any, n: int) -> tuple[str, np.ndarray | None]:
    """Split ``ordering=`` into a name and a permutation.

    Raises
    ------
    ValueError
        Neither one of `ORDERINGS` nor a permutation of ``range(n)``.
    """
    if isinstance(ordering, str):
        return one_of("ordering", ordering, ORDERINGS), None
    perm = np.asarray(ordering)
    if perm.ndim != 1 or perm.dtype.kind not in "iu" or perm.size != n:
        raise ValueError(
            f"ordering must be one of {', '.join(map(repr, ORDERINGS))} or a permutation of range({n}), "
            f"got an array of shape {perm.shape} and dtype {perm.dtype}"
        )
    seen = np.zeros(n, dtype=bool)
    seen[perm[(perm >= 0) & (perm < n)]] = True
    if not seen.all():
        raise ValueError(f"ordering is not a permutation of range({n}): {int(np.argmin(seen))} does not occur in it")
    return "natural", np.ascontiguousarray(perm, dtype=np.int32)


def without_usual(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """`arguments` of lu_options after the first, with None for SuperLU's defaults and for values without effect. Many
    programs pass them with every matrix."""
    permc_spec, threshold, relax, panel_size, *others = arguments
    if permc_spec is threshold is relax is panel_size is None:
        return arguments
    if type(permc_spec) in (str, int) and permc_spec in ORDERINGS_OF_SUPERLU:
        permc_spec = None
    if isinstance(threshold, (float, int)) and 1 <= threshold < float("inf"):
        threshold = None
    relax, panel_size = (None if type(size) is int else size for size in (relax, panel_size))
    return (permc_spec, threshold, relax, panel_size, *others)


def lu_options(
    n: int,
    permc_spec: Any,
    diag_pivot_thresh: Any,
    relax: Any,
    panel_size: Any,
    options: Any,
    ordering: Any,
    pivoting: Any,
    refine: Any,
    precision: Any,
) -> Options:
    """Read the arguments of splu, those of SciPy and those that gpusplu adds.

    ``permc_spec="NATURAL"`` keeps the order of the columns; SuperLU's other orderings leave the choice to `ordering`.
    A threshold of at most 0.1, or ``SymmetricMode``, trusts the diagonal: there is no matching. SuperLU's default, 1,
    leaves the choice of pivots to gpusplu. A threshold between the two applies where pivots are sought by columns, as
    ``pivoting="partial"`` does like SuperLU. `relax`, `panel_size` and the options that tune SuperLU itself are checked
    and have no effect. The option ``symbolic`` is gpusplu's, for engines that can compute the pattern of L + U on the
    device. `without_usual` removes arguments without effect.
    """
    given = (permc_spec, diag_pivot_thresh, relax, panel_size, options, ordering, pivoting, refine, precision)
    if all(map(is_, given, DEFAULTS)):
        return DEFAULT_OPTIONS
    symbolic, expert = SYMBOLIC_PHASES[0], dict[str, Any]()
    if not permc_spec is diag_pivot_thresh is relax is panel_size is options is None:
        symbolic, expert = read_expert(permc_spec, diag_pivot_thresh, relax, panel_size, options)
    name, perm = read_ordering(ordering, n)
    one_of("pivoting", pivoting, PIVOTINGS)
    one_of("refine", refine, REFINEMENTS)
    if is_natural(expert.get("ColPerm")):
        if perm is not None or name not in ("auto", "natural"):
            raise ValueError(f"permc_spec='NATURAL' contradicts ordering={ordering!r}; pass one of the two")
        name = "natural"
    threshold, matching = PIVOT_THRESHOLD, True
    if "DiagPivotThresh" in expert and float(expert["DiagPivotThresh"]) < 1:
        threshold = max(float(expert["DiagPivotThresh"]), 0.0)
        matching = threshold > PIVOT_THRESHOLD and pivoting != "partial"
    if expert.get("SymmetricMode"):
        matching = False
    if str(expert.get("IterRefine") or "NO").upper() not in ("NO", "NOREFINE") and refine == "auto":
        refine = "always"
    precision = read_precision(precision, refine)
    symmetric = pivoting == "auto" and refine != "never" and not expert and name != "natural"  # nor a permutation
    return Options(
        name, perm, pivoting, refine, threshold, matching, symbolic, precision=precision, symmetric=symmetric
    )


def read_expert(
    permc_spec: Any, diag_pivot_thresh: Any, relax: Any, panel_size: Any, options: Any
) -> tuple[str, dict[str, Any]]:
    """The option ``symbolic``, and the options of SuperLU that the caller sets and that have an effect; SciPy refuses
    what it does not know."""
    given: dict[str, Any] = dict(options) if options is not None else {}
    symbolic = one_of("symbolic", given.pop("symbolic", SYMBOLIC_PHASES[0]), SYMBOLIC_PHASES)
    sizes = {"Relax": without_size(relax), "PanelSize": without_size(panel_size)}
    given = {"ColPerm": permc_spec, "DiagPivotThresh": diag_pivot_thresh, **sizes, **given}
    given.update({name: without_size(given[name]) for name in sizes})
    expert = {name: value for name, value in given.items() if value is not None}
    if expert:
        check_expert(given)
    return symbolic, expert


def without_size(size: Any) -> Any:
    """None for a size that SuperLU accepts, because it has no effect here; else the size, for SciPy to refuse."""
    try:
        index(size)
    except TypeError:
        return size
    return None


def cholesky_options(n: int, ordering: Any, refine: str, precision: str = "double") -> Options:
    """Read the arguments of cholesky."""
    name, perm = read_ordering(ordering, n)
    one_of("refine", refine, REFINEMENTS)
    return Options(name, perm, refine=refine, matching=False, precision=read_precision(precision, refine))


def ldlt_options(n: int, ordering: Any, refine: str, hermitian: bool, precision: str = "double") -> Options:
    """Read the arguments of ldlt; `hermitian` is resolved."""
    name, perm = read_ordering(ordering, n)
    one_of("refine", refine, REFINEMENTS)
    return Options(name, perm, refine=refine, hermitian=hermitian, precision=read_precision(precision, refine))


def read_precision(precision: Any, refine: str) -> str:
    """Check ``precision=``, which has no effect without refinement."""
    one_of("precision", precision, PRECISIONS)
    if precision == "mixed" and refine == "never":
        raise ValueError("precision='mixed' is refinement, and contradicts refine='never'; pass one of the two")
    return "double" if refine == "never" else str(precision)


def kind_of(cholesky: bool, ldlt: bool) -> str:
    """Kind of the factorization that the flags request."""
    if cholesky and ldlt:
        raise ValueError("an analysis is for cholesky or for ldlt, not for both")
    return "ldlt" if ldlt else "cholesky" if cholesky else "lu"


def is_natural(col_perm: Any) -> bool:
    """SuperLU reads names in any case and also its own enumeration, in which NATURAL is 0."""
    return col_perm is not None and (str(col_perm).upper() == "NATURAL" or str(col_perm) == "0")


def check_expert(expert: Mapping[str, Any]) -> None:
    """Let SciPy itself refuse names and values that SuperLU does not know."""
    try:
        hash(tuple(expert.values()))
    except TypeError:
        checked_by_scipy.__wrapped__(tuple(expert), *expert.values())
    else:
        checked_by_scipy(tuple(expert), *expert.values())


@lru_cache(typed=True)
def checked_by_scipy(names: tuple[Any, ...], *values: Any) -> None:
    """Factor a 1 x 1 matrix with options of SuperLU; once, as that costs as much as larger ones."""
    import scipy.sparse as sp

    from .scipy_names import original

    original("splu")(sp.csc_array(np.ones((1, 1))), options=dict(zip(names, values, strict=True)))


def own_lu_options(
    n: int,
    ordering: Ordering = "auto",
    pivoting: Pivoting = "auto",
    refine: Refine = "auto",
    precision: Precision = "double",
) -> Options:
    """Options of LU without SciPy's arguments."""
    return lu_options(n, None, None, None, None, None, ordering, pivoting, refine, precision)
