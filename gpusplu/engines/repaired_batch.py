"""A batch whose systems are as accurate as single ones: systems for which the common pivots are unsuitable get separate
factors.

Such a system keeps its separate factor as long as it needs one: the next values are refactored with its pivots. While a
device works on all systems, the host works on those that needed separate factors last time. Whether they need them this
time is known afterwards and decides which solution is returned.

A device measures and refines the systems of a batch without the host. Calls with ``wait=False`` only omit the separate
treatment. The status of every system accumulates on the device until the next call that waits reads it. Systems with a
solution less accurate than `check` promises are then *suspect*: `status` shows them until they have been reported and
another call is made. The values that were factored last are treated as in other calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy import count_nonzero

from .. import _core
from ..common import matrix
from ..common.counting import FACTORIZATIONS
from ..common.listeners import log_enabled, tell
from ..errors import BatchError, NotPositiveDefiniteError, is_singular
from . import registry
from .interface import Accumulated, Analysis, Batch, Engine, Given, HostWork
from .problem import Problem

#: Fields of a report that are zero if a system has nothing to notice.
FLAGS = ("n_perturbed", "n_tiny", "not_finite", "not_symmetric")
MULTIPLE = 32  # chunks have a multiple of this many systems if possible: as many as a warp factors concurrently


def make_batch(engine: Engine, problem: Problem, analysis: Analysis, count: int) -> Batch | None:
    """A batch with capacity for `count` systems or, if memory is short, for as many as fit, processed in turn.

    Raises
    ------
    MemoryError
        There is none for a single system.
    """
    size = count
    while True:
        try:
            batch = engine.batch(problem, analysis, size)
        except MemoryError:
            if size == 1:
                raise
            size = -(-size // 2)
            size -= size % MULTIPLE if size > MULTIPLE else 0
            continue
        return batch if size == count or batch is None else ChunkedBatch(batch, count, size)


class ChunkedBatch(Batch):
    """A batch that is larger than memory: systems that one batch of an engine factors chunk by chunk, again
    for every solve; their values are kept.

    Parameters
    ----------
    batch : Batch
        Of `size` systems. The last chunk is filled up with systems of the one before it.
    count, size : int
    """

    def __init__(self, batch: Batch, count: int, size: int):
        self._batch, self._starts = batch, [*range(0, count - size, size), count - size]
        self.n, self.nbytes, self.steps = batch.n, batch.nbytes, np.zeros(count, np.int32)
        self._count, self._size, self._loaded = count, size, -1
        self._errors = np.full(count, np.nan)
        self._values: Any = None
        self._source: np.ndarray | None = None

    def _load(self, start: int) -> slice:
        """Factor the systems from `start` on; return their range."""
        which = slice(start, start + self._size)
        if self._loaded != start:
            self._batch.refactor(self._values[which], self._source)
            self._loaded = start
        return which

    def refactor(self, values: Any, source: np.ndarray | None = None, *, wait: bool = True) -> None:
        self._values, self._source, self._loaded = values.copy(), source, -1

    def _gathered(self, read: Callable[[], tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
        """Results of all systems from those of each chunk, of which all have the systems as first dimension."""
        found: tuple[np.ndarray, ...] = ()
        for start in self._starts:
            which = self._load(start)
            parts = read()
            found = found or tuple(np.empty((self._count, *part.shape[1:]), part.dtype) for part in parts)
            for whole, part in zip(found, parts, strict=True):
                whole[which] = part
        return found

    def report(self) -> np.ndarray:
        return self._gathered(lambda: (self._batch.report(),))[0]

    def solve(self, b: Any, trans: int = 0, given: Given | None = None, **options: Any) -> Any:
        if given is not None:
            self.refactor(*given)
        x = None
        for start in self._starts:
            which = self._load(start)
            part = self._batch.solve(b[which], trans)
            if x is None:
                x = part if self._size == self._count else np.empty_like(part, order="C", shape=b.shape)
            x[which] = part
            self._errors[which], self.steps[which] = self._batch.errors(), self._batch.steps
        return x

    def errors(self) -> np.ndarray:
        return self._errors

    def slogdet(self) -> tuple[np.ndarray, np.ndarray]:
        sign, logabsdet = self._gathered(self._batch.slogdet)
        return sign, logabsdet

    def inverse_on_pattern(self) -> tuple[np.ndarray, np.ndarray]:
        entries, errors = self._gathered(self._batch.inverse_on_pattern)
        return entries, errors

    def values(self, system: int) -> np.ndarray:
        one = matrix.to_host(self._values[system])
        return one.copy() if self._source is None else one[self._source]


MOST_OVERLAPPED = 64  # systems that the host works on concurrently with a device: their values take page-locked memory


class BatchStatus(IntEnum):
    """Status of a system. Systems that are singular, not definite, not finite or not Hermitian have no factor and NaN
    as solutions.

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> values = np.stack([A.data, 2 * A.data, 3 * A.data])
    >>> batch = gs.splu_batch(A, values)
    >>> gs.BatchStatus(batch.status[0])
    <BatchStatus.RIGHT: 0>
    >>> values[1] = 0
    >>> batch.refactor(values)
    >>> [gs.BatchStatus(status).name for status in batch.status]
    ['RIGHT', 'SINGULAR', 'RIGHT']
    """

    RIGHT = 0
    REFINED = 1  # right after refinement of its last solution
    REPIVOTED = 2  # right with separate pivots
    SINGULAR = 3
    NOT_DEFINITE = 4
    NOT_FINITE = 5
    UNTRUSTED = 6  # has a factor, but not all deferred solutions can be trusted
    NOT_HERMITIAN = 7  # only cholesky_batch: both triangles were given, and they differ by more than rounding


RIGHT, REFINED = int(BatchStatus.RIGHT), int(BatchStatus.REFINED)  # NumPy compares with numbers in a fifth of the time


class RepairedBatch:
    """A `Numeric` of many systems, for every engine: repairs what the engine's own batch leaves, and factors one system
    after the other if the engine has no batches. Every system has a status. One thread calls it at a time.

    Parameters
    ----------
    engine : Engine
    problem : Problem
        Of the dtype of the values.
    analysis : Analysis
    count : int
        Of systems.
    raises : bool
        Raise BatchError if systems have no factor, or solutions cannot be trusted.
    """

    def __init__(self, engine: Engine, problem: Problem, analysis: Analysis, count: int, raises: bool):
        self._engine, self._problem, self._analysis, self.raises = engine, problem, analysis, raises
        self.count, self._dtype = count, problem.dtype
        self._map = problem.pattern.direct_map(self._dtype)  # positions of canonical values in the caller's
        options = problem.options
        self._policy = _core.AccuracyPolicy(self._dtype.char, pivoting=options.pivoting, refine=options.refine)
        self.on_device = engine.capabilities.on_device
        self._batch: Any = make_batch(engine, problem, analysis, count)
        self.side_by_side = self._batch is not None
        self.takes_values = self._map[0]  # the caller's values are canonical ones in another order
        self.device_array = self._batch.device_array if self._batch is not None else None
        self._factored = np.zeros(count, np.int8)  # status after the factorization
        self._status = np.zeros(count, np.int8)
        self._error = np.full(count, np.nan)
        self._single_factors: dict[int, Any] = {}  # ordinary factors by system
        self._own: dict[int, BatchStatus] = {}  # status of the separate factors of the values held
        self._pending = False  # the last factorization has not been evaluated completely
        self._held: np.ndarray | None = None  # canonical values, if the engine holds none
        self._waiting: tuple[Any, np.ndarray | None] | None = None  # values and source, to be factored by a solve
        self._suspects = np.zeros(count, bool)  # some deferred solution cannot be trusted
        self._largest = np.full(count, np.nan)  # backward errors of such solutions
        self._reported = False  # both have been reported to the caller

    nbytes = property(lambda self: 0 if self._batch is None else int(self._batch.nbytes))

    # ---- calls

    def refactor(self, values: Any, *, canonical: bool = False, wait: bool = True, postpone: bool = False) -> None:
        """Factor the caller's values, or canonical ones; with `postpone` in the next solve if there is a batch.

        With ``wait=False`` values have to be as `takes_values` requires.
        """
        direct, source = (True, None) if canonical else self._map
        if not wait:
            self._batch.refactor(values, source, wait=False)
            FACTORIZATIONS.add(self.count)
            return
        given = values
        values = values if self.on_device else matrix.to_host(values)
        if self._batch is None or not direct:
            host = matrix.to_host(values)
            values = host.copy() if canonical else np.stack([self._problem.pattern.gather(one) for one in host])
            source = None
        self._own, self._pending = {}, True
        FACTORIZATIONS.add(self.count)
        if self._batch is None:
            self._held = values
            self._resolve()
            return
        if postpone:
            self._waiting = values, source
            return
        self._waiting = None
        self._batch.refactor(values, source)
        if self.raises or not matrix.is_cupy_array(given):
            self._resolve()

    def factor_waiting(self) -> None:
        """Factor values that a solve would have factored."""
        if self._waiting is not None:
            (values, source), self._waiting = self._waiting, None
            self._batch.refactor(values, source)

    def solve(self, b: Any, trans: int) -> Any:
        """Solve for right-hand sides in the dtype of the factors, C-contiguous, shape (nbatch, n) or (nbatch, n, k)."""
        if matrix.is_cupy(b) and not (self.on_device and self._batch):
            return matrix.to_device(self.solve(b.get(), trans))
        if b.size == 0:  # nothing to measure, but a refactorization may be pending
            self.factor_waiting()
            self._resolve()
            self._error[...], self._status[...] = np.nan, self._factored
            return b.copy()
        if self._batch is None:
            self._resolve()
            x = np.full(b.shape, np.nan, self._dtype)
            self._solve_single(b, x, trans, {})
            return x
        solved: dict[int, Any] = {}
        host_work = self._host_work(trans, solved) if self._batch.overlaps and self._single_factors else None
        waiting, self._waiting = self._waiting, None
        x = self._batch.solve(b, trans, waiting, host_work=host_work)
        self._resolve()
        self._error[...] = self._batch.errors()
        self._separate(self._inaccurate(b))
        self._status[...] = self._factored
        if count_nonzero(self._batch.steps):
            self._status[(self._batch.steps > 0) & (self._factored == RIGHT)] = REFINED
        self._solve_single(b, x, trans, solved)
        return x

    def solve_deferred(self, values: Any, b: Any, trans: int, out: Any) -> Any:
        """Solve without waiting, after a refactorization if there are values."""
        given = None if values is None else (values, self._map[1])
        FACTORIZATIONS.add(0 if given is None else self.count)
        return self._batch.solve(b, trans, given, out=out, wait=False)

    # ---- results; each waits

    def check(self) -> np.ndarray:
        """Largest backward errors of the solutions since the last check; NaN for systems without one."""
        self.begin()
        self._reported = True
        return self._largest.copy()

    def include_errors(self) -> None:
        """Include the last solutions, which were checked at once, in the result of `check`."""
        self._largest = np.fmax(self._largest, self._error)

    @property
    def status(self) -> np.ndarray:
        self.poll()
        self._resolve()
        return self._whole_status()

    @property
    def backward_error(self) -> np.ndarray:
        self.poll()
        return self._error.copy()

    def slogdet(self) -> tuple[np.ndarray, np.ndarray]:
        """As in NumPy, 0 and minus infinity for singular systems; NaN if there is no factor for another reason."""
        self.poll()
        self._resolve()
        sign, logabsdet = np.ones(self.count, self._dtype), np.zeros(self.count)
        if self._batch is not None:
            sign[...], logabsdet[...] = self._batch.slogdet()
        for system in self._of_their_own():
            sign[system], logabsdet[system] = self._single_factors[system].slogdet()
        singular, failed = self._factored == BatchStatus.SINGULAR, self._factored > BatchStatus.SINGULAR
        sign[singular], logabsdet[singular] = 0, -np.inf
        sign[failed], logabsdet[failed] = np.nan, np.nan
        return sign, logabsdet

    def inverse_on_pattern(self) -> np.ndarray:
        """Entry (j, i) of each inverse for each canonical entry (i, j) of A, shape (nbatch, nnz)."""
        self.poll()
        self._resolve()
        entries = np.full((self.count, self._problem.nnz), np.nan, self._dtype)
        if self._batch is not None:
            entries[...], errors = self._batch.inverse_on_pattern()
            report, policy = self._batch.report(), self._policy
            is_reliable = map(policy.ones_tell, report["multiplier"].tolist(), report["growth"].tolist())
            fit = [seen and policy.is_inverse(error) for seen, error in zip(is_reliable, errors.tolist(), strict=True)]
            self._separate(~np.array(fit) & (self._factored == BatchStatus.RIGHT))
        entries[self._factored >= BatchStatus.SINGULAR] = np.nan
        for system in self._of_their_own():
            entries[system] = self._own_inverse(system)
        return entries

    def values(self, system: int) -> np.ndarray:
        """Canonical values of a system."""
        self.poll()
        return self._values(system) if self._held is None else self._values(system).copy()

    # ---- calls that did not wait

    def begin(self) -> None:
        """Check the deferred calls before a new one; forget what has been reported."""
        if self._reported:
            self._forget_reported()
        self.poll()

    def _forget_reported(self) -> None:
        if self._reported:
            self._suspects[:], self._largest[:], self._reported = False, np.nan, False

    def poll(self) -> None:
        """Check the deferred calls.

        Raises
        ------
        RuntimeError
            The caller's stream is captured.
        BatchError
        """
        accumulated = self._batch.accumulated() if self.device_array else None
        if accumulated is None:
            return
        self._forget_reported()
        if accumulated.n_factored:
            self._own, self._pending = {}, True
        if accumulated.n_solved:
            self._largest, self._error[:] = np.fmax(self._largest, accumulated.error), accumulated.error
            self._suspects |= self._suspects_of(accumulated)
        self._resolve()
        self._raise_flagged()

    def _suspects_of(self, accumulated: Accumulated) -> np.ndarray:
        """Systems for which a call that waits would have chosen other pivots, raised, or warned of an error."""
        suspects = self._incompatible(accumulated.report)
        refined = self._problem.options.refine != "never" and self._policy.may_choose_pivots(0, True)
        if refined and not self._policy.is_accurate(float(accumulated.error.max())):
            suspects |= [not self._policy.is_accurate(error) for error in accumulated.error.tolist()]
        return suspects

    # ---- status and repair

    def _resolve(self) -> None:
        """Evaluate the last factorization, and factor systems that need other pivots separately."""
        if not self._pending:
            return
        incompatible = (
            np.ones(self._factored.size, bool) if self._batch is None else self._incompatible(self._batch.report())
        )
        self._factored[...] = BatchStatus.RIGHT
        self._separate(incompatible)
        self._pending = False  # only now: after Ctrl-C the next call repeats this
        self._tell()

    def _values(self, system: int) -> np.ndarray:
        """Canonical values of a system."""
        return self._batch.values(system) if self._held is None else self._held[system]

    def _separate(self, which: np.ndarray) -> None:
        """Make separate factors of the systems of a mask."""
        if not count_nonzero(which):
            return
        systems = np.flatnonzero(which).tolist()
        missing = {system: self._values(system) for system in systems if system not in self._own}
        self._on_host(lambda system: self._own_factor(system, missing[system]), missing)
        for system in systems:
            self._factored[system] = self._own[system]

    def _on_host(self, work: Callable[[int], Any], systems: Iterable[int]) -> list[Any]:
        """``work(system)`` of each system, by several threads if the CPU engine made their factors.

        If it raises in such a thread, the next call makes these factors again.
        """
        systems = list(systems)
        count = min(len(systems), _core.num_threads()) if self._batch is not None else 1
        if count <= 1:
            return [work(system) for system in systems]
        pool = ThreadPoolExecutor(count, "gpusplu batch")
        try:
            requested = [pool.submit(work, system) for system in systems]
            wait(requested)  # signals get through
            return [one.result() for one in requested]
        except BaseException:
            self._single_factors, self._own = {}, {}  # threads may still work on these factors
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _incompatible(self, report: np.ndarray) -> np.ndarray:
        """Systems that need separate pivots by the accuracy policy."""
        flagged = any(count_nonzero(report[name]) for name in FLAGS) or count_nonzero(report["failed"] >= 0)
        if not (flagged or self._is_suspect(report["multiplier"].max())):
            return np.zeros(report.size, bool)
        incompatible: np.ndarray = (report["failed"] >= 0) | (report["not_finite"] != 0)
        if self._problem.cholesky:
            incompatible |= report["not_symmetric"] != 0
            return incompatible
        incompatible |= (report["n_perturbed"] > 0) | (report["n_tiny"] > 0)
        rest = np.flatnonzero(~incompatible)
        multipliers = report["multiplier"][rest]
        if rest.size and self._is_suspect(multipliers.max()):
            incompatible[rest] = [self._is_suspect(multiplier) for multiplier in multipliers]
        return incompatible

    def _is_suspect(self, multiplier: float) -> bool:
        return bool(self._policy.is_suspect(_core.PivotReport(max_multiplier=float(multiplier))))

    def _own_factor(self, system: int, canonical: np.ndarray) -> None:
        """Make or refactor the separate factor of a system with these values."""
        self._own[system] = self._own_factored(system, canonical)

    def _own_factored(self, system: int, canonical: np.ndarray) -> BatchStatus:
        if not _core.all_finite(canonical):
            return BatchStatus.NOT_FINITE
        cholesky = self._problem.cholesky
        if cholesky and not self._problem.pattern.pairs(True, canonical.dtype).hold(canonical):
            return BatchStatus.NOT_HERMITIAN
        try:
            if system in self._single_factors:
                self._single_factors[system].refactor(canonical, None, *[True] * cholesky)
            else:
                self._single_factors[system] = self._ordinary(canonical)
        except NotPositiveDefiniteError:
            return BatchStatus.NOT_DEFINITE
        except RuntimeError as error:
            if not is_singular(error):
                raise
            return BatchStatus.SINGULAR
        return BatchStatus.RIGHT if self._batch is None else BatchStatus.REPIVOTED

    def _ordinary(self, canonical: np.ndarray) -> Any:
        """An engine's factor of one system; by the default engine if the systems are factored side by side."""
        problem = self._problem
        if self._batch is None:
            return self._engine.factor(problem, self._analysis, canonical)
        analysis = self._analysis if problem.cholesky else problem.memo("suspects", self._analyze_suspects)
        return registry.named(registry.DEFAULT).factor(problem, analysis, canonical)

    def _analyze_suspects(self) -> Analysis:
        """Analyse for separate LU factors, by the method that suits one system best: fronts that replace small pivots
        need more refinement.

        The values analysed lead to the matching and the scales that the systems share. Values of a system would make
        the results of the others depend on the choice of the system.
        """
        problem, core = self._problem, self._analysis.core
        rows, columns = problem.pattern.ind, np.repeat(np.arange(problem.n), np.diff(problem.pattern.ptr))
        matched = np.empty(problem.n, np.int32)
        matched[core.col_perm] = core.row_perm
        sizes = np.where(matched[columns] == rows, 2.0, 1.0)
        if core.row_scale.size:
            exponents = np.log2(core.row_scale)[rows] + np.log2(core.col_scale)[columns]
            sizes *= np.exp2(-np.clip(exponents, -1000, 1000))
        options, request = replace(problem.options, symmetric=False), problem.request._replace(systems=0)
        one = Problem(problem.pattern, sizes, problem.kind, options, request)
        return registry.named(registry.DEFAULT).analyze(one)

    def _tell(self) -> None:
        """Set the status of the systems after the factorization; raise for failed ones with ``errors="raise"``."""
        self._status[...] = self._factored
        if log_enabled() and self._factored.any():
            kinds = {kind.name.lower().replace("_", " "): int((self._factored == kind).sum()) for kind in BatchStatus}
            tell(f"of {self._factored.size:,} systems " + ", ".join(f"{n:,} {kind}" for kind, n in kinds.items() if n))
        self._raise_flagged()

    def _raise_flagged(self) -> None:
        """With ``errors="raise"``, raise if systems have no factor or solutions cannot be trusted."""
        if not self.raises:
            return
        status = self._whole_status()
        failed = np.flatnonzero(status >= BatchStatus.SINGULAR)
        if failed.size:
            self._reported = True
            raise BatchError(failed, [BatchStatus(s) for s in status[failed]])

    def _inaccurate(self, b: Any) -> np.ndarray:
        """Systems with insufficiently accurate last solutions by the common pivots that could be improved."""
        error = np.where(self._factored == RIGHT, self._error, 0.0) if count_nonzero(self._factored) else self._error
        never = self._problem.options.refine == "never"
        if never or self._policy.is_enough(float(error.max(initial=0.0))):
            return np.zeros(error.size, bool)
        return np.array([not self._policy.is_enough(one) and self._may_repair(b[k]) for k, one in enumerate(error)])

    def _may_repair(self, b: Any) -> bool:
        return bool(self._policy.may_choose_pivots(0, bool(np.isfinite(matrix.to_host(b)).all())))

    def _host_work(self, trans: int, solved: dict[int, Any]) -> HostWork:
        """Factor and solve with the separate factors of systems that have one; the solutions go to `solved`."""
        systems = list(self._single_factors)[:MOST_OVERLAPPED]
        stale = [system for system in systems if system not in self._own]

        def work(values: np.ndarray, rhs: np.ndarray) -> None:
            canonical, b = dict(zip(stale, values, strict=True)), dict(zip(systems, rhs, strict=True))

            def of_one(system: int) -> Any:
                if system in canonical:
                    self._own_factor(system, canonical[system])
                failed = self._own[system] >= BatchStatus.SINGULAR
                return None if failed else self._own_solution(system, b[system], trans)

            solved.update(zip(systems, self._on_host(of_one, systems), strict=True))

        return HostWork(systems, stale, work)

    def _own_solution(self, system: int, b: np.ndarray, trans: int) -> tuple[np.ndarray, float] | None:
        """The solution by a system's separate factor and its error; None if the values turn out to be singular."""
        factor = self._single_factors[system]
        try:
            x = factor.solve(np.asfortranarray(b), trans)
        except RuntimeError as error:
            if not is_singular(error):
                raise
            return None
        return x, factor.backward_error

    def _solve_single(self, b: Any, x: Any, trans: int, solved: dict[int, Any]) -> None:
        """Solve with the separate factors of the values held; some systems are already `solved`."""
        if self._batch is not None and not count_nonzero(self._factored):
            self._single_factors, self._own = {}, {}
            return
        systems = np.flatnonzero(self._factored).tolist() if self._batch is not None else range(len(self._factored))
        good = [system for system in systems if self._factored[system] < BatchStatus.SINGULAR]
        rhs = {system: matrix.to_host(b[system]) for system in good if system not in solved}
        found = self._on_host(lambda system: self._own_solution(system, rhs[system], trans), rhs)
        solved = solved | dict(zip(rhs, found, strict=True))
        singular = [system for system in good if solved[system] is None]
        self._factored[singular] = self._status[singular] = BatchStatus.SINGULAR
        failed = [system for system in systems if self._factored[system] >= BatchStatus.SINGULAR]
        right = [system for system in good if solved[system] is not None]
        if failed:
            x[failed], self._error[failed] = np.nan, np.nan
        if right:
            whole = np.stack([solved[system][0] for system in right])
            x[right] = matrix.to_device(whole) if matrix.is_cupy_array(x) else whole
            errors = np.array([solved[system][1] for system in right])
            self._error[right] = np.where(errors >= 0, errors, np.nan)
        if singular:
            self._raise_flagged()
        if self._batch is not None:
            kept = {system: self._single_factors[system] for system in right}
            self._single_factors, self._own = kept, {system: self._own[system] for system in kept}

    def _of_their_own(self) -> list[int]:
        """Systems that have a separate factor of the values held, which gives their results."""
        which = self._factored < BatchStatus.SINGULAR
        if self._batch is not None:
            which &= self._factored != BatchStatus.RIGHT
        return np.flatnonzero(which).tolist()

    def _own_inverse(self, system: int) -> Any:
        """Entries of the inverse by a system's separate factor; NaN if it has to choose pivots again and finds that the
        values are singular."""
        try:
            return self._single_factors[system].host_factor().inverse_on_pattern()
        except RuntimeError as error:
            if not is_singular(error):
                raise
            self._factored[system] = self._status[system] = BatchStatus.SINGULAR
            return np.nan

    def _whole_status(self) -> np.ndarray:
        status = self._status.copy()
        status[self._suspects & (self._factored < BatchStatus.SINGULAR)] = BatchStatus.UNTRUSTED
        return status
