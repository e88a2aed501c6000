"""BatchedLUFactor and BatchedCholeskyFactor: factors of many systems with one pattern.

An engine that factors systems side by side does so with the pivots of one analysis for all of them, and says of every
system what became of it. Systems that those pivots do not suit get an ordinary factor of their own here, with pivots
chosen among their own values; so do all of them where the engine has no batches. What counts as safe is decided by the
rules that hold for single factors (core/certify/ladder.hpp).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from threading import RLock
from time import perf_counter
from typing import Any

import numpy as np

from . import _core, matrix
from .arrays import takes_arrays
from .counting import FACTORIZATIONS
from .engines import registry
from .engines.interface import EngineBatch, FactorsAndSolves
from .engines.pieces import make_batch
from .errors import BatchError, NotPositiveDefiniteError, require
from .options import one_of
from .results import SlogDet
from .rhs import solve_batch_as_given
from .stats import Stats
from .symbolic import BATCHES, FACTORS, Symbolic

ERRORS = ("flag", "raise")


class BatchStatus(IntEnum):
    """What became of a system; from `SINGULAR` on it has no factor, and its solutions are NaN."""

    RIGHT = 0
    REFINED = 1  # right after refinement of its last solution
    REPIVOTED = 2  # right with pivots of its own
    SINGULAR = 3
    NOT_DEFINITE = 4
    NOT_FINITE = 5


class BatchedFactor:
    """What batches of LU and of Cholesky factors share.

    Every system is as accurate as by a factor of its own, and its results do not depend on how many systems there are
    or on their order. One that cannot be factored is flagged, its solutions are NaN, and the others are not touched.
    Threads may use a batch one after the other; calls wait for each other.
    """

    def __init__(self, symbolic: Symbolic, values: Any, errors: str = "flag", canonical: bool = False):
        """Factor `values`, shape (nbatch, size), each row in the order of ``A.data``, or canonical ones."""
        self._symbolic, self._errors = symbolic, one_of("errors", errors, ERRORS)
        self._problem, self._analysis = symbolic.parts()
        if not canonical:
            values = self._read(values)
        self._dtype, self._lock = values.dtype, RLock()
        count = values.shape[0]
        self._ladder = _core.Ladder(
            self._dtype.char, pivoting=self._problem.options.pivoting, refine=self._problem.options.refine
        )
        self._problem = self._problem.of_dtype(self._dtype)
        engine = registry.named(symbolic.engine)
        self._on_device = engine.on_device
        self._systems = make_batch(engine, self._problem, self._analysis, count)
        self._alone: dict[int, Any] = {}  # ordinary factors by system
        self._held: np.ndarray | None = None  # canonical values, where the engine holds none
        self._factored = np.zeros(count, np.int8)  # status as the factorization left it
        self._status = np.zeros(count, np.int8)
        self._error = np.full(count, np.nan)
        self._pending = False  # nobody has looked at the last factorization
        self._waiting: tuple[Any, np.ndarray | None] | None = None  # values and source, to be factored by a solve
        self._seconds = {"refactor": 0.0, "solve": 0.0}
        self._refactor(values, canonical)

    shape = property(lambda self: (len(self), *self._symbolic.shape), doc="Number of systems, and shape of each.")
    dtype = property(lambda self: self._dtype, doc="Of the factors and of the solutions.")
    engine = property(lambda self: self._symbolic.engine, doc="Name of the engine that runs.")
    symbolic = property(lambda self: self._symbolic, doc="The analysis that all systems share.")

    def __len__(self) -> int:
        return int(self._status.size)

    # ---- factor

    @takes_arrays
    def refactor(self, values: Any) -> None:
        """Factor new values of all systems.

        Parameters
        ----------
        values : array_like, shape (nbatch, size)
            On the host or on the device; row i is what ``refactor`` of system i's own factor takes.

        Raises
        ------
        ValueError
            Another shape.
        BatchError
            With ``errors="raise"``: systems are singular, not definite or not finite; says which.
        """
        with self._lock:
            self._refactor(self._read(values))

    def _refactor(self, values: Any, canonical: bool = False) -> None:
        start = perf_counter()
        self._load(values, canonical)
        if self._errors == "raise" or not matrix.is_cupy_array(values):
            self._settle()
        self._seconds["refactor"] = perf_counter() - start

    def _read(self, values: Any) -> Any:
        """The values of a caller in the dtype of the factors, shape (nbatch, size)."""
        known = self.__dict__.get("_dtype")
        values = matrix.batch_values(self._problem.pattern, values, known)
        if known is not None and values.shape[0] != len(self):
            raise ValueError(f"refactor: values of {values.shape[0]} systems, the batch has {len(self)}")
        return values

    def _load(self, values: Any, canonical: bool = False, at_once: bool = False) -> None:
        """Have the caller's values factored, or canonical ones; by the next solve, `at_once`, if the engine can."""
        direct, source = (True, None) if canonical else self._problem.pattern.direct_map(self._dtype)
        values = values if self._on_device else matrix.to_host(values)
        if self._systems is None or not direct:
            host = matrix.to_host(values)
            values = host.copy() if canonical else np.stack([self._problem.pattern.gather(one) for one in host])
            source = None
        if self._systems is not None:
            self._alone, self._pending = {}, True
            FACTORIZATIONS.add(len(self))
            self._waiting = (values, source)
            if not (at_once and isinstance(self._systems, FactorsAndSolves)):
                self._factor_those_that_wait()
            return
        self._held = values
        self._factored[...] = [self._own_factor(system, one) for system, one in enumerate(values)]
        FACTORIZATIONS.add(len(self))
        self._tell()

    def _factor_those_that_wait(self) -> None:
        if self._waiting is not None:
            (values, source), self._waiting = self._waiting, None
            self._side_by_side.refactor(values, source)

    def _settle(self) -> None:
        """Look at the last factorization, and factor alone what needs other pivots."""
        if not self._pending:
            return
        self._pending = False
        report = self._side_by_side.report()
        self._factored[...] = BatchStatus.RIGHT
        self._separate(self._unfit(report))
        self._tell()

    @property
    def _side_by_side(self) -> EngineBatch:
        assert self._systems is not None
        return self._systems

    def _separate(self, which: np.ndarray) -> None:
        """Give the systems of a mask factors of their own."""
        for system in np.flatnonzero(which).tolist():
            self._factored[system] = self._own_factor(system, self._side_by_side.values(system))

    def _unfit(self, report: np.ndarray) -> np.ndarray:
        """Which systems need pivots of their own, by what the ladder says of each."""
        unfit: np.ndarray = (report["failed"] >= 0) | (report["not_finite"] != 0)
        if self._symbolic.cholesky:
            return unfit
        unfit |= (report["n_perturbed"] > 0) | (report["n_tiny"] > 0)
        rest = np.flatnonzero(~unfit)
        multipliers = report["multiplier"][rest]
        if rest.size and self._doubts(multipliers.max()):
            unfit[rest] = [self._doubts(multiplier) for multiplier in multipliers]
        return unfit

    def _doubts(self, multiplier: float) -> bool:
        return bool(self._ladder.is_doubtful(_core.PivotReport(max_multiplier=float(multiplier))))

    def _own_factor(self, system: int, canonical: np.ndarray) -> BatchStatus:
        """Give a system an ordinary factor of these values, or refactor the one it has; what came of it."""
        if not _core.all_finite(canonical):
            return BatchStatus.NOT_FINITE
        try:
            if system in self._alone:
                self._alone[system].refactor(canonical, None)
            else:
                self._alone[system] = self._ordinary(canonical)
        except (NotPositiveDefiniteError, _core.NotPositiveDefinite):
            return BatchStatus.NOT_DEFINITE
        except RuntimeError as error:
            if str(error) != "Factor is exactly singular":
                raise
            return BatchStatus.SINGULAR
        return BatchStatus.RIGHT if self._systems is None else BatchStatus.REPIVOTED

    def _ordinary(self, canonical: np.ndarray) -> Any:
        """An engine's factor of one system: of the default engine where the systems are factored side by side."""
        if self._systems is None:
            return self._symbolic.make(canonical)
        return registry.named(registry.DEFAULT).factor(self._problem, self._analysis, canonical)

    def _tell(self) -> None:
        """Raise where systems failed, if that was asked for."""
        self._status[...] = self._factored
        failed = np.flatnonzero(self._factored >= BatchStatus.SINGULAR)
        if self._errors == "raise" and failed.size:
            raise BatchError(failed, [BatchStatus(s) for s in self._factored[failed]])

    # ---- solve

    @takes_arrays
    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """Solve ``op(A_i) x_i = rhs_i`` for every system.

        Parameters
        ----------
        rhs : ndarray, shape (n,), (nbatch, n) or (nbatch, n, k)
            On the host or on the device; (n,) is taken for every system. Must cast safely to the dtype of the factors;
            complex ones of real factors are fine as long as their parts do.
        trans : {"N", "T", "H"}, optional
            A, its transpose, or its conjugate transpose.

        Returns
        -------
        x : ndarray, shape (nbatch, n) or (nbatch, n, k)
            On the device if `rhs` is there. NaN for systems that have no factor (`status`).

        Raises
        ------
        TypeError
            `rhs` is not an array, or casting it would lose precision.
        ValueError
            Another shape, or an unknown `trans`.
        BatchError
            With ``errors="raise"``, after values on the device: see `refactor`.
        """
        start = perf_counter()
        with self._lock:
            x = solve_batch_as_given(self._solve, rhs, trans, (len(self), self._problem.n), self._dtype)
            self._seconds["solve"] = perf_counter() - start
        return x

    def _solve(self, b: Any, trans: int) -> Any:
        """For right-hand sides in the dtype of the factors, C-contiguous, shape (nbatch, n) or (nbatch, n, k)."""
        if matrix.is_cupy(b) and not (self._on_device and self._systems):
            return matrix.to_device(self._solve(b.get(), trans))
        if self._systems is None:
            x = np.full(b.shape, np.nan, self._dtype)
            for system in range(len(self)):
                self._solve_alone(system, b, x, trans)
            return x
        if self._waiting is not None and isinstance(self._systems, FactorsAndSolves):
            (values, source), self._waiting = self._waiting, None
            x = self._systems.refactor_solve(values, b, trans, source)
        else:
            x = self._side_by_side.solve(b, trans)
        self._settle()
        self._error[...] = self._systems.errors()
        refined = (self._systems.steps > 0) & (self._factored == BatchStatus.RIGHT)
        self._separate(self._inaccurate(b))
        self._status[...] = np.where(refined & (self._factored == 0), BatchStatus.REFINED, self._factored)
        for system in np.flatnonzero(self._factored).tolist():
            self._solve_alone(system, b, x, trans)
        return x

    def _inaccurate(self, b: Any) -> np.ndarray:
        """Systems whose last solutions are not good enough, by the pivots that all share, and could be better."""
        error = np.where(self._factored == BatchStatus.RIGHT, self._error, 0.0)
        never = self._problem.options.refine == "never"
        if never or self._ladder.is_enough(float(error.max(initial=0.0))):
            return np.zeros(len(self), bool)
        return np.array([not self._ladder.is_enough(one) and self._may_mend(b[k]) for k, one in enumerate(error)])

    def _may_mend(self, b: Any) -> bool:
        return bool(self._ladder.may_choose_pivots(0, bool(np.isfinite(matrix.to_host(b)).all())))

    def _solve_alone(self, system: int, b: Any, x: Any, trans: int) -> None:
        """Solve with a system's own factor, where it has one of the values held."""
        if self._factored[system] >= BatchStatus.SINGULAR:
            x[system], self._error[system] = np.nan, np.nan
            return
        core = self._alone[system]
        solved = core.solve(np.asfortranarray(matrix.to_host(b[system])), trans)
        x[system] = matrix.to_device(solved) if matrix.is_cupy_array(x) else solved
        self._error[system] = core.backward_error if core.backward_error >= 0 else np.nan

    @takes_arrays
    def refactor_solve(self, values: Any, rhs: Any, trans: str = "N") -> Any:
        """``refactor(values)``, then ``solve(rhs, trans)``, looked at once.

        Parameters
        ----------
        values, rhs, trans
            As those methods take them.

        Returns
        -------
        x : ndarray, shape (nbatch, n) or (nbatch, n, k)
        """
        with self._lock:
            self._load(self._read(values), at_once=True)
            try:
                return self.solve(rhs, trans)
            finally:
                self._factor_those_that_wait()

    # ---- what is known about the systems

    @property
    def status(self) -> np.ndarray:
        """What became of each system, int8, shape (nbatch,): values of `BatchStatus`."""
        with self._lock:
            self._settle()
            return self._status.copy()

    @property
    def backward_error(self) -> np.ndarray:
        """Normwise backward error of each system's last solve, shape (nbatch,); NaN where none was measured."""
        with self._lock:
            return self._error.copy()

    def slogdet(self) -> SlogDet:
        """Sign (or phase) and logarithm of the modulus of each determinant, both of shape (nbatch,).

        As NumPy has it, 0 and minus infinity for singular systems; NaN where there is no factor for another reason.
        """
        with self._lock:
            self._settle()
            sign, logabsdet = np.ones(len(self), self._dtype), np.zeros(len(self))
            if self._systems is not None:
                sign[...], logabsdet[...] = self._side_by_side.slogdet()
            for system, core in self._alone.items():
                sign[system], logabsdet[system] = core.slogdet()
            singular, failed = self._factored == BatchStatus.SINGULAR, self._factored > BatchStatus.SINGULAR
            sign[singular], logabsdet[singular] = 0, -np.inf
            sign[failed], logabsdet[failed] = np.nan, np.nan
            return SlogDet(sign, logabsdet)  # type: ignore[arg-type]

    def canonical(self, system: int) -> np.ndarray:
        """Canonical values of a system, shape (nnz,)."""
        with self._lock:
            return self._side_by_side.values(system) if self._held is None else self._held[system].copy()

    def __getitem__(self, system: int) -> Any:
        """An ordinary factor of one system, made now; raises what making one raises."""
        index = range(len(self))[system]
        canonical = self.canonical(index)
        matrix.check_finite(self._problem.pattern, canonical)
        return FACTORS[self._problem.kind](self._symbolic, canonical)

    def __iter__(self) -> Iterator[Any]:
        return (self[system] for system in range(len(self)))

    @property
    def stats(self) -> Stats:
        """Seconds of the last calls, sizes, and how many systems are what."""
        status = self.status
        counts = {kind.name.lower(): int((status == kind).sum()) for kind in BatchStatus}
        return Stats(
            {
                "engine": self.engine,
                "n": self._problem.n,
                "nnz": self._problem.nnz,
                "nbatch": len(self),
                "side_by_side": self._systems is not None,
                **counts,
                "bytes": 0 if self._systems is None else int(self._systems.nbytes),
                "seconds": dict(self._symbolic.seconds) | self._seconds,
            }
        )

    def __repr__(self) -> str:
        count, n, _ = self.shape
        return f"<{type(self).__name__} of {count} systems, {n} x {n}, {self._dtype.name}, engine {self.engine}>"

    def __reduce__(self) -> tuple[Any, ...]:
        values = np.stack([self.canonical(system) for system in range(len(self))])
        return restore_batch, (type(self), self._symbolic, values, self._errors)


class BatchedLUFactor(BatchedFactor):
    """LU factors of many matrices with one pattern; made by :func:`gpusplu.splu_batch`."""


class BatchedCholeskyFactor(BatchedFactor):
    """Cholesky factors of many Hermitian positive definite matrices with one pattern.

    Made by :func:`gpusplu.cholesky_batch`. Calling it solves.
    """

    def __call__(self, rhs: Any) -> Any:
        """Solve ``A_i x_i = rhs_i``."""
        return self.solve(rhs)

    def logdet(self) -> np.ndarray:
        """Logarithms of the determinants, shape (nbatch,)."""
        return np.asarray(self.slogdet().logabsdet)


def restore_batch(kind: Any, symbolic: Any, canonical: Any, errors: Any) -> BatchedFactor:
    """A batch of the class `kind`, factored again.

    Raises
    ------
    ValueError
        The parts do not belong together.
    """
    whole = isinstance(kind, type) and issubclass(kind, BatchedFactor) and isinstance(symbolic, Symbolic)
    require(whole and kind is BATCHES[symbolic.parts()[0].kind], "a part is something else")
    values = isinstance(canonical, np.ndarray) and canonical.dtype in matrix.FLOATS and canonical.ndim == 2
    require(values and canonical.shape[0] > 0 and canonical.shape[1] == symbolic.nnz, "the values are not of a batch")
    batch: BatchedFactor = kind(symbolic, np.ascontiguousarray(canonical), "flag", True)
    batch._errors = one_of("errors", errors, ERRORS)
    return batch


BATCHES.update(lu=BatchedLUFactor, cholesky=BatchedCholeskyFactor)
