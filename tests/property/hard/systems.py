"""One hard system from its seed: a matrix, what is done with its factor, and the verdicts."""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

import gpusplu as gs

from .generators import GENERATORS
from .verdict import judge

EXPONENT = {"f": 37, "F": 37, "d": 300, "D": 300}
OTHERS = ("near", "far", "wild")  # values to refactor with


@dataclass(frozen=True)
class System:
    """Everything follows from the seed, but for what is given."""

    seed: int
    engine: str = "cpu"
    largest: int = 60
    generator: str | None = None

    def __str__(self):
        given = f" --generator {self.generator}" if self.generator else ""
        return f"--systems 1 --seed {self.seed} --engine {self.engine} --largest {self.largest}{given}"


def matrix(rng, name, n, char):
    """Finite, in the type, without infinities that casting made."""
    exponent = EXPONENT[char]
    A = GENERATORS[name](rng, n, exponent)
    A.sum_duplicates()
    if char in "FD":
        A = A * np.exp(1j)
        A.data *= np.exp(1j * rng.uniform(0, 1, A.nnz))
    with np.errstate(over="ignore", under="ignore"):
        A = sp.csc_array(A, dtype=char)
    A.data[~np.isfinite(A.data)] = 1
    return A


def right_hand_side(rng, M, char):
    """Of a known solution, random, or of any size that the type has."""
    n = M.shape[0]
    kind = rng.choice(("known", "random", "sized", "unit"))
    b = rng.standard_normal(n) + (1j * rng.standard_normal(n) if char in "FD" else 0)
    with np.errstate(all="ignore"):
        if kind == "known":
            b = M.astype("G" if char in "FD" else "g") @ b
        elif kind == "sized":
            b = b * 10.0 ** rng.uniform(-EXPONENT[char], EXPONENT[char])
        elif kind == "unit":
            b = np.eye(1, n, rng.integers(n))[0]
        b = b.astype(char)
    return b if np.isfinite(b).all() else np.ones(n, char)


def other_values(rng, A, kind):
    with np.errstate(all="ignore"):
        if kind == "near":
            data = A.data * (1 + 0.5 * rng.random(A.nnz))
        elif kind == "far":
            far = 1.9 * EXPONENT[A.dtype.char]
            data = A.data * np.longdouble(10) ** rng.uniform(-far, far)
        else:
            data = rng.standard_normal(A.nnz) * 10.0 ** rng.uniform(-8, 8, A.nnz)
        data = data.astype(A.dtype)
    return np.where(np.isfinite(data), data, 1).astype(A.dtype)


def check_singular(error):
    """The one RuntimeError that may come."""
    if str(error) != "Factor is exactly singular":
        raise error


def solve_and_judge(rng, A, factor):
    """Verdicts of solves with A, its transpose and its conjugate transpose; `factor` is None where it is singular."""
    dense = A.toarray()
    for trans, M in (("N", dense), ("T", dense.T), ("H", dense.conj().T)):
        b = right_hand_side(rng, M, A.dtype.char)
        x, warned = None, False
        if factor is not None:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    x = factor.solve(b, trans)
                except RuntimeError as error:
                    check_singular(error)
            warned = any(issubclass(w.category, RuntimeWarning) for w in caught)
        yield trans, judge(A, M, b, trans, x, warned)


def refactored(factor, values):
    """The factor, None if the values are called singular."""
    try:
        factor.refactor(values)
    except RuntimeError as error:
        check_singular(error)
        return None
    return factor


def run(system):
    """(what, verdict) of all that is done with a system."""
    rng = np.random.default_rng(system.seed)
    names = list(GENERATORS)
    name = system.generator or names[rng.integers(len(names))]
    char, n = "fdFD"[rng.integers(4)], int(rng.integers(1, system.largest + 1))
    A = matrix(rng, name, n, char)
    what = f"{name} {char} n={n}"
    try:
        factor = gs.splu(A, engine=system.engine, ordering=rng.choice(("auto", "auto", "auto", "amd", "nd", "natural")))
    except RuntimeError as error:
        check_singular(error)
        factor = None
    verdicts = [(f"{what} {trans}", verdict) for trans, verdict in solve_and_judge(rng, A, factor)]
    if factor is None:
        return verdicts
    B = A.copy()
    for kind in rng.permutation(OTHERS)[:2]:
        B.data = other_values(rng, A, kind)
        found = solve_and_judge(rng, B, refactored(factor, B.data))
        verdicts += [(f"{what} {kind} {trans}", verdict) for trans, verdict in found]
    found = solve_and_judge(rng, A, refactored(factor, A.data))
    return verdicts + [(f"{what} back {trans}", verdict) for trans, verdict in found]
