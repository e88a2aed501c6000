"""What an engine is: the interface that the facade, the selection and the command line use.

An engine is a folder of this package (or, for tests, any object) with a subclass of `Engine` that registry.py lists.
The order of calls is unsupported, estimate, analyze, factor; a named engine skips estimate, and an engine that reports
the matrix as unsupported gets no further calls. An engine keeps what it computes for a matrix in the matrix's
`Problem`, so that estimate and analyze do nothing twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from ..cost import table
from ..cost.model import Costs, Estimate, Observations

if TYPE_CHECKING:
    from ..common.matrix import Pattern
    from ..common.memo import Memo
    from ..common.options import Options
    from ..common.timing import Measured
    from .problem import Problem, Request

KINDS = ("lu", "cholesky", "ldlt")  # of factorizations

Measure = Callable[[str, bool], "Measured | str"]


class Analysis(NamedTuple):
    """The information that an engine needs about a pattern before it factors values.

    Attributes
    ----------
    core : _core.Symbolic
        Ordering and structure.
    plan : object or None
        The engine's own, if it can be made before there are pivots.
    compared : tuple of (str, float)
        Orderings that the engine chose among, and the predicted seconds that it compared.
    """

    core: Any
    plan: Any = None
    compared: tuple[tuple[str, float], ...] = ()


class Numeric(Protocol):
    """A factor as engines make it; `Factor` adds SciPy's interface. The core's own factor is one.

    Threads may call it concurrently. Its values, solutions and right-hand sides all have one dtype, that of the values
    it was made with; columns are n apart. A refactorization that raises, or finds a NaN, leaves the factor as it was.

    A factor that takes arrays on a device has their class as `device_array`, and `refactor_solve`. Its `refactor`,
    `solve` and `refactor_solve` take ``wait=False``, which is ``check="later"`` of users, and it has `check`, which
    waits, repairs, raises, and returns the largest backward error of calls that did not wait. A factor that builds
    graphs has `get_ready`, which builds them before a call needs them.
    """

    n: int
    nnz: int
    method: str
    symbolic: Any  # _core.Symbolic
    backward_error: float  # of the last solve that measured it, negative if none did

    def refactor(self, values: Any, source: np.ndarray | None = None, checked: bool = False) -> int:
        """Factor canonical values or, with `source`, the caller's, of which ``values[source]`` are canonical; canonical
        position of a NaN or Inf, or -1. The factor neither keeps nor changes the caller's arrays.

        Cholesky and LDL^T compare both triangles of the values, and raise NotHermitianError or ``_core.NotSymmetric``
        where they are not what `matrix.check_symmetry` lets pass; unless they are canonical, on the host, and the
        caller has `checked` them. LU gets no `checked`."""

    def solve(self, b: Any, trans: int = 0) -> Any:
        """op(A) X = B, shape (n,) or (n, nrhs); trans: 0 for A, 1 for its transpose, 2 for its conjugate transpose."""

    def values(self) -> np.ndarray:
        """Canonical values that were factored last."""

    def host_factor(self) -> Any:
        """The factor of the values held that L, U, D, permutations and entries of the inverse are taken from, with
        the members that these have in the core's factor: `lower` and `upper` (pointers, rows and values of compressed
        columns), `pivots`, `row_perm`, `col_perm`, `inverse_on_pattern`, `inverse_on_factors`, `inverse_at`."""

    def slogdet(self) -> Any: ...

    def rcond(self) -> float: ...

    def stats(self) -> dict[str, Any]:
        """Counts, seconds and sizes, as the core's factor names them.

        Required: ``bytes``, ``flops``, ``factor_seconds``, ``refactor_seconds``, ``solve_seconds``, ``max_multiplier``,
        ``n_refactor``, ``n_repivoted``, ``n_reanalyzed``, ``n_refinement``, ``n_perturbed``; on the processor also
        ``min_pivot``, ``max_pivot``, ``pivot_growth``, ``n_delayed``, ``n_off_diagonal``, ``n_updated``.
        """


class SchurNumeric(Protocol):
    """Fronts of an interior. The core's own, core/numeric/partial_factor.hpp, also have the two halves of a solve, and
    need no other factor besides."""

    def factor(self, values: np.ndarray, reserved_bytes: int) -> np.ndarray | None:
        """The Schur complement that canonical values of the whole matrix leave, by columns; None if fronts have no
        acceptable pivots, or if there is no memory besides another factor of that many bytes."""

    def refactor(self, values: Any, entries: np.ndarray, reserved_bytes: int) -> tuple[Any, Any, Any] | None:
        """The same for values in the caller's order on the device, left there; also these canonical entries, and
        all."""


class Accumulated(NamedTuple):
    """Accumulated status of calls of a batch that did not wait.

    Attributes
    ----------
    report : ndarray, shape (nbatch,)
        As `Batch.report`, the worst of all factorizations.
    error : ndarray, shape (nbatch,)
        Largest backward error of all solutions, infinite for one that is NaN.
    n_factored, n_solved : int
        Calls.
    """

    report: np.ndarray
    error: np.ndarray
    n_factored: int
    n_solved: int


#: Values of a refactorization, and their source or None.
Given = tuple[Any, "np.ndarray | None"]


class HostWork(NamedTuple):
    """Work of the host for some systems of a batch while a device solves for all.

    Attributes
    ----------
    systems, stale : list of int
        Systems of which the host needs the right-hand sides, and those of which it needs the values.
    work : callable
        ``work(values, rhs)`` for these, shapes (len(stale), nnz) and (len(systems), n) or (len(systems), n, k), which
        the next call overwrites.
    """

    systems: list[int]
    stale: list[int]
    work: Callable[[np.ndarray, np.ndarray], None]


class Batch(Protocol):
    """Factors of many systems with one pattern as engines make them: a `Numeric` with a leading axis and the same
    pivots for all systems. `RepairedBatch` repairs systems that these pivots do not suit.

    One thread calls it at a time. Arrays have its dtype and are C-contiguous. If the engine is on a device, only
    `report`, `errors`, `steps`, `values`, `slogdet`, `inverse_on_pattern`, `accumulated`, and solves with arrays on the
    host wait for it.

    Attributes
    ----------
    device_array : type or None
        Class of its arrays, if it takes calls with ``wait=False``. These may be captured into a graph of the caller's,
        their status accumulates on the device, and solutions of systems that have no factor are NaN. All other methods
        raise if a stream is captured.
    overlaps : bool
        A device works concurrently with the host, so solves take `host_work`.
    """

    n: int
    nbytes: int
    steps: np.ndarray  # of refinement, of the last solve, shape (nbatch,)
    device_array: type | None = None
    overlaps: bool = False

    def refactor(self, values: Any, source: np.ndarray | None = None, *, wait: bool = True) -> None:
        """Factor canonical values, shape (nbatch, nnz), or, with `source`, the caller's, shape (nbatch, size)."""

    def solve(
        self,
        b: Any,
        trans: int = 0,
        given: Given | None = None,
        *,
        out: Any = None,
        wait: bool = True,
        host_work: HostWork | None = None,
    ) -> Any:
        """op(A_i) x_i = b_i, shape (nbatch, n) or (nbatch, n, k); measured, and refined by the accuracy policy. With
        `given`, the arguments of `refactor`, that comes first. `out`: where the solutions go with ``wait=False``; may
        be `b`."""

    def report(self) -> np.ndarray:
        """Status of the last factorization, one entry per system.

        Fields: ``multiplier``, the largest of L in modulus where it may matter; ``growth``, the largest entry of U
        relative to that of A as it is scaled; ``n_perturbed`` and ``n_tiny``, pivots as in the core's PivotReport;
        ``failed``, the column of an invalid pivot, or -1; ``not_finite``; ``not_symmetric``, of values for
        Cholesky, including borderline cases.
        """

    def errors(self) -> np.ndarray:
        """Normwise backward errors of the last solve, the largest over right-hand sides, shape (nbatch,)."""

    def slogdet(self) -> tuple[np.ndarray, np.ndarray]: ...

    def inverse_on_pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """Entry (j, i) of the inverse for each canonical entry (i, j) of A, shape (nbatch, nnz), and for the accuracy
        policy's `is_inverse` the error of those of each system; computed from the factors."""

    def values(self, system: int) -> np.ndarray:
        """Canonical values of one system that were factored last, on the host."""

    def accumulated(self) -> Accumulated | None:
        """Status accumulated by calls with ``wait=False`` since the last call of this method, None if there were no
        calls; waits."""
        return None


class Capabilities(NamedTuple):
    """What an engine can do.

    Attributes
    ----------
    kinds : tuple of str
        Of `KINDS`: the factorizations it makes.
    methods : tuple of str
        Of the core's analyses ("column", "front") that it can go on with.
    symbolic_phases : tuple of str
        Of `options.SYMBOLIC_PHASES`: where it can find the pattern of its factors.
    batches : bool
        It factors many systems together (`Engine.batch`).
    on_device : bool
        It runs on a CUDA device, and needs values and vectors there.
    several : bool
        Several devices of a host can share its work.
    schur : bool
        Its fronts can leave a Schur complement (`Engine.schur`).
    """

    kinds: tuple[str, ...] = KINDS[:2]
    methods: tuple[str, ...] = ("column", "front")
    symbolic_phases: tuple[str, ...] = ("host",)
    batches: bool = False
    on_device: bool = False
    several: bool = False
    schur: bool = False


class Engine(ABC):
    """One method to factor and to solve.

    Attributes
    ----------
    name : str
        For ``engine=``.
    capabilities : Capabilities
    costs : Costs
        Shipped constants of the estimates of an engine that is not built in, by entry, names beginning with the
        engine's; those of the others are in cost/table.py.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities] = Capabilities()
    costs: ClassVar[Costs] = {}

    def __init_subclass__(cls) -> None:
        table.add(cls.costs)

    def unsupported(self, problem: Problem) -> str:
        """Why this engine cannot take the matrix, as the text of an error; empty if it can."""
        if problem.kind not in self.capabilities.kinds:
            return f"engine={self.name!r} has no {problem.kind} factorization"
        if problem.options.symbolic not in self.capabilities.symbolic_phases:
            return f"engine={self.name!r} has no symbolic phase on the {problem.options.symbolic}"
        if problem.request.devices and not self.capabilities.several:
            return f"engine={self.name!r} runs on one device; pass one device"
        return ""

    def lower_bound(self, problem: Problem) -> float:
        """Lower bound of the seconds of a factor, without an analysis for this engine [s]."""
        return 0.0

    @abstractmethod
    def estimate(self, problem: Problem) -> Estimate:
        """Seconds by phase, memory, and whether single precision pays; a note if this engine cannot run."""

    @abstractmethod
    def analyze(self, problem: Problem) -> Analysis:
        """Order, analyse and, if possible without values, plan."""

    @abstractmethod
    def adopt(self, problem: Problem, analysis: Analysis) -> None:
        """Make `estimate` and `analyze` use an analysis that was made before."""

    @abstractmethod
    def factor(self, problem: Problem, analysis: Analysis, values: np.ndarray) -> Numeric:
        """Factor canonical values, shape (nnz,).

        Raises
        ------
        RuntimeError
            ``Factor is exactly singular``.
        NotPositiveDefiniteError
        DeviceMemoryError
        """

    def factor_matrix(
        self, A: Any, kind: str, options: Options, request: Request, cache: Any, borrow: bool
    ) -> tuple[Problem, Analysis, Numeric, Any, int] | None:
        """Analyse and factor a caller's matrix in one call, for which separate calls would take longer than the work.

        Parameters
        ----------
        A : sparse matrix, shape (n, n)
            From `dispatch.pipeline.read`.
        kind : {"lu", "cholesky", "ldlt"}
        options : Options
        request : Request
        cache : _core.Patterns
            The patterns that the process caches.
        borrow : bool
            The caller does not receive the factor, so it may be one that the cache holds.

        Returns
        -------
        problem, analysis, numeric, known, dropped, or None
            The problem has no values, and holds the analysis. `known`: the cached pattern that was used, or None;
            `dropped`: number of the call that made a cached analysis which was not usable, or 0. None if all this is
            not possible, and if the values are not valid: the caller then takes the steps one by one, and raises the
            error.
        """
        return None

    def batch(self, problem: Problem, analysis: Analysis, count: int) -> Batch | None:
        """A batch with capacity for `count` systems of the problem's pattern and dtype; None if each needs its own
        factor.

        Raises
        ------
        MemoryError
        """
        return None

    def schur(self, problem: Problem, whole: Any, pattern: Pattern, dtype: np.dtype, memo: Memo) -> SchurNumeric | Any:
        """Object that factors the problem's matrix as the interior of a larger one, which has the analysis `whole`
        (core/analysis/symbolic.hpp) and the canonical `pattern`: `SchurNumeric` or the core's; None if there is
        none. All factors by `whole` share `memo`."""
        return None

    def describe(self, analysis: Analysis, stats: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Titles and texts of lines that explain() shows of this engine. `stats`: of a factor; empty without one."""
        return []

    def calibrate(self, case: tuple[str, bool] | None, measure: Measure, costs: Costs, budget: float) -> Observations:
        """Measure what the constants of the estimates are fitted to.

        Parameters
        ----------
        case : tuple of (str, bool)
            Name of a matrix of the gallery, and whether it is factored by Cholesky. None: costs of a first use.
        measure : callable
            ``measure(engine, on_device)``: seconds by phase of the matrix from Python.
        costs : Costs
            Of the processor, as fitted.
        budget : float
            How long each phase is repeated [s].
        """
        return {}
