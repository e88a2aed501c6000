"""Fits constants of the table to measurements, and stores them on disk next to the compiled kernels.

A file belongs to one subject, a device or a processor with its threads, and to one version of the models; a file that
cannot be read as such is ignored.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeGuard

import numpy as np

from .. import _core
from ..cuda.cache import folder, write
from ..cuda.layout import struct
from .model import Costs, Observation, Term, seconds
from .table import entries, shipped

#: Increases when a kernel or a feature changes so that constants fitted before are wrong.
VERSION = 6
#: The system's description of each processor, the first one first.
CPUINFO = "/proc/cpuinfo"
#: How strongly the parts of a prediction are drawn to their values by shipped constants, all scaled by one factor, if
#: measurements do not distinguish them; and the minimal share of a part.
DRAWN = 0.3
LEAST_SHARE = 1e-3
#: Initial share of a part without a shipped constant; it is drawn to zero.
NEW_SHARE = 0.1
ROUNDS = 12
#: Largest change at a time of constants which follow another one: models that are not sums must stay in the range
#: in which their decisions make sense.
MOST_CHANGE = 2.0
#: Relative error above which a measurement counts as an outlier.
OUTLIER = 0.3


def fit(observations: Sequence[Observation], prior: Term) -> dict[str, float]:
    """Fit constants of a term to measurements, by the logarithms of predicted over measured.

    Nonnegative least squares (Lawson and Hanson, Solving Least Squares Problems, 1974, chapter 23), iteratively
    reweighted as by Huber (Robust Statistics, 1981, section 7.8), with the contribution of each constant drawn a little
    to that of the prior, times a common factor.

    Parameters
    ----------
    observations : sequence of Observation
        Of positive seconds.
    prior : mapping
        Initial constants; one that is 0 stays near 0 unless measurements require more.

    Returns
    -------
    dict
        The prior if there are no observations.
    """
    from scipy.optimize import nnls

    if not observations:
        return dict(prior)
    took = np.array([o.seconds for o in observations])
    features = np.array([[o.features[name] for name in prior] for o in observations]) / took[:, None]
    shipped_at = np.array([*prior.values()])
    common = float(np.exp(np.median(np.log(1 / np.maximum(features @ shipped_at, 1e-12)))))
    begin = np.where(shipped_at > 0, shipped_at, NEW_SHARE / common / np.maximum(features.mean(axis=0), 1e-300))
    shares = features * begin
    drawn = DRAWN * np.diag(np.sqrt(np.maximum(common * shares.mean(axis=0), LEAST_SHARE)))
    weights = np.ones(len(observations))
    factors = np.full(len(prior), common)
    for _ in range(ROUNDS):
        left = np.vstack([weights[:, None] * shares, drawn / common])
        right = np.concatenate([weights, np.diag(drawn) * (shipped_at > 0)])
        factors, _ = nnls(left, right)
        logs = np.log(np.clip(shares @ factors, 0.01, 100))
        # the second part penalizes too little like too much: (p - m) / sqrt(p m) is odd in the logarithm of p / m
        weights = np.sqrt(np.minimum(1.0, OUTLIER / np.maximum(np.abs(logs), 1e-12))) * np.exp(-logs / 2)
    return dict(zip(prior, (factors * begin).tolist(), strict=True))


def with_followers(fitted: Costs, current: Costs) -> dict[str, dict[str, float]]:
    """Fitted constants with those that follow them, which change from `current` by the same factor.

    If other entries predict a feature, those change by the factor, and the constant itself stays.
    """
    costs = {name: dict(term) for name, term in fitted.items()}
    for name, entry in entries().items():
        if entry.follows is None or entry.follows[0] not in fitted:
            continue
        term, feature = entry.follows
        factor = min(max(fitted[term][feature] / current[term][feature], 1 / MOST_CHANGE), MOST_CHANGE)
        costs[name] = {constant: factor * value for constant, value in current[name].items()}
        if feature in entries()[term].modelled:
            costs[term][feature] = fitted[term][feature] / factor
    return costs


def spread(observations: Sequence[Observation], term: Term) -> float:
    """Typical factor between predicted and measured: the exponential of the median of the logarithms' moduli."""
    if not observations:
        return math.nan
    predicted = [seconds(term, o.features) for o in observations]
    logs = [abs(math.log(max(p, 1e-12) / o.seconds)) for p, o in zip(predicted, observations, strict=True)]
    return float(np.exp(np.median(logs)))


def processor_name() -> str:
    """The processor and the number of threads that the CPU engine uses."""
    return f"{processor_model()}, {_core.num_threads()} threads"


@cache
def processor_model() -> str:
    """The model name that the system reports."""
    try:
        with open(CPUINFO) as lines:  # the system queries every processor that is read about, and hosts have hundreds
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()  # starts a process


def path_of(subject: str) -> Path:
    """Path of the file with the constants of a subject."""
    digest = hashlib.sha256(repr((VERSION, subject)).encode()).hexdigest()[:16]
    return folder() / f"costs-{digest}.json"


def store(subject: str, costs: Costs) -> Path:
    """Store fitted constants; predictions use them from now on.

    Raises
    ------
    OSError
        The folder cannot be written.
    """
    path = path_of(subject)
    text = json.dumps({"version": VERSION, "subject": subject, "costs": {k: dict(v) for k, v in costs.items()}})
    write(path, text.encode())
    forget()
    return path


def forget() -> None:
    """Read files again."""
    kept.cache_clear()
    _for_core.cache_clear()


@cache
def kept(subject: str) -> dict[str, object]:
    """The stored content for a subject, unvalidated. May be empty."""
    try:
        found = json.loads(path_of(subject).read_text())
        if found["version"] == VERSION and found["subject"] == subject:
            return dict(found["costs"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {}


def stored(subject: str) -> dict[str, dict[str, float]]:
    """Stored constants of a subject: those of terms that exist and have these features. May be empty."""
    known = kept(subject)
    terms = shipped() if known else {}
    found = {name: known.get(name) for name in terms}
    return {name: dict(term) for name, term in found.items() if fits(term, terms[name])}


def fits(found: object, term: Term) -> TypeGuard[Mapping[str, float]]:
    """Whether constants read from a file have the features of a term."""
    return (
        isinstance(found, dict)
        and set(found) == set(term)
        and all(
            isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
            for value in found.values()
        )
    )


def costs_of(device: str | None = None) -> Costs:
    """Constants of this processor and of a device: fitted ones if stored, else shipped ones."""
    return {**shipped(), **stored(processor_name()), **(stored(device) if device else {})}


def for_core(device: str | None = None) -> _core.Costs:
    """The same in the core's format; cached, because small matrices are analysed in microseconds."""
    return _for_core(device, _core.num_threads())


@cache
def _for_core(device: str | None, threads: int) -> _core.Costs:
    return packed(costs_of(device))


def packed(costs: Costs) -> _core.Costs:
    """Constants in the core's format."""
    return _core.Costs(_filled(struct("shared/costs.hpp", "Costs"), costs, "").reshape(1).view(np.float64))


def _filled(dtype: np.dtype, costs: Costs, name: str) -> np.ndarray:
    """A struct of kernels/shared/costs.hpp: an entry, or all entries with names that begin with `name`."""
    filled = np.zeros((), dtype)
    for member in dtype.names or ():
        if dtype[member].names:
            filled[member] = _filled(dtype[member], costs, f"{name}.{member}".lstrip("."))
        else:
            filled[member] = costs[name].get(member, 0.0)
    return filled
