"""Hashes of what factorizations give, of the CPU engine."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import gpusplu as gs

from .matrices import CASES, Case, in_scalar, other_values, right_hand_sides, wild_values

ORDERS = ("natural", "amd", "nd")
MAKE = {"lu": gs.splu, "cholesky": gs.cholesky, "ldlt": gs.ldlt}
ERRORS = (ValueError, RuntimeError, np.linalg.LinAlgError)
Facts = dict[str, str]


def digest(*arrays: Any) -> str:
    """Of the bytes, types and shapes of arrays and sparse matrices."""
    found = hashlib.sha256()
    for array in arrays:
        for part in (array.indptr, array.indices, array.data) if sp.issparse(array) else (np.asarray(array),):
            found.update(f"{part.dtype.str}{part.shape}".encode() + part.tobytes(order="A"))
    return found.hexdigest()[:12]


def in_words(error: Exception) -> str:
    """The public class of an error, and its text."""
    public = next(kind for kind in type(error).__mro__ if kind.__module__ in ("builtins", "gpusplu.errors"))
    return f"{public.__name__}: {error}"


def outcome(call: Callable[[], str]) -> str:
    """What a call gives; an error by its name and text."""
    try:
        return call()
    except ERRORS as error:
        return in_words(error)


def solutions(factor: Any, b: np.ndarray) -> str:
    return digest(*(factor.solve(b, trans) for trans in "NTH"))


def facts_of(factor: Any, kind: str, b: np.ndarray) -> Iterator[tuple[str, Callable[[], str]]]:
    """What a factor holds."""
    yield "x", lambda: solutions(factor, b[:, 0].copy())
    yield "x3", lambda: solutions(factor, b)
    yield "L", lambda: digest(factor.L)
    if kind == "lu":
        yield "U", lambda: digest(factor.U)
        yield "perm", lambda: digest(factor.perm_r, factor.perm_c)
    else:
        yield "perm", lambda: digest(factor.perm)
    if kind == "ldlt":
        yield "D", lambda: digest(factor.D)
    yield "slogdet", lambda: digest(*factor.slogdet())
    yield "how", lambda: " ".join(str(factor.stats[key]) for key in ("method", "ordering", "n_repivoted"))


def of_factor(make: Callable[..., Any], A: sp.csc_array, kind: str, b: np.ndarray) -> Facts:
    """Of a fresh factor, and after refactor, refactor with values that other pivots suit, and refactor_solve."""
    facts: Facts = {}
    try:
        factor = make(A)
    except ERRORS as error:
        return {"made": in_words(error)}
    for name, call in facts_of(factor, kind, b):
        facts[name] = outcome(call)
    values = other_values(A, kind != "lu" or abs(A - A.T).nnz == 0)

    def refactored() -> str:
        factor.refactor(values)
        return ""

    if said := outcome(refactored):
        facts["refactor"] = said
    for name, call in facts_of(factor, kind, b):
        facts[f"refactor {name}"] = outcome(call)
    if kind != "cholesky":
        values = wild_values(A, kind)
        if said := outcome(refactored):
            facts["wild"] = said
        facts["wild x"] = outcome(lambda: solutions(factor, b))
        facts["wild how"] = outcome(lambda: f"{factor.stats['method']} repivoted {factor.stats['n_repivoted']}")
    facts["refactor_solve"] = outcome(lambda: digest(factor.refactor_solve(A.data, b[:, 0].copy())))
    return facts


def of_routes(A: sp.csc_array, kind: str, b: np.ndarray, hermitian: bool) -> Iterator[tuple[str, Callable[[], str]]]:
    """Solutions by other ways to a factor; the pattern of A has been factored before."""
    vector, options = b[:, 0].copy(), {} if kind != "ldlt" else {"hermitian": hermitian}
    kinds = {"lu": {}, "cholesky": {"cholesky": True}, "ldlt": {"ldlt": True}}[kind]
    make = MAKE[kind]
    yield "remembered", lambda: digest(make(A, **options).solve(vector))
    yield "analyzed", lambda: digest(gs.analyze(A, **kinds, **options).factor(A.data).solve(vector))
    yield "refined", lambda: digest(make(A, refine="always", **options).solve(vector))
    yield "orders", lambda: digest(*(make(A, ordering=name, **options).solve(vector) for name in ORDERS))
    yield "mixed", lambda: digest(make(A, precision="mixed", **options).solve(vector))
    if kind == "lu":
        yield "spsolve", lambda: digest(gs.spsolve(A, vector), gs.spsolve(A, vector), gs.spsolve(A.tocsr(), b))
        yield "static", lambda: digest(gs.splu(A, pivoting="static").solve(vector))
        yield "partial", lambda: digest(gs.splu(A, pivoting="partial").solve(vector))
    else:
        yield "triangle", lambda: digest(make(sp.csc_array(sp.tril(A)), **options).solve(vector))
    if kind != "ldlt":
        batch = {"lu": gs.splu_batch, "cholesky": gs.cholesky_batch}[kind]
        values = np.stack([A.data, 2 * A.data, other_values(A, kind != "lu")])
        yield "batch", lambda: digest(batch(A, values).solve(vector))
    yield "inverse", lambda: digest(make(A, **options).selected_inverse())


def of_case(case: Case, scalar: str) -> Iterator[tuple[str, Facts]]:
    """Facts of a matrix in a type, by kind of factorization."""
    complex_scalar = np.dtype(scalar).kind == "c"
    for kind in case.kinds:
        for hermitian in (True, False) if kind == "ldlt" and complex_scalar else (True,):
            A = in_scalar(case.make(), scalar, hermitian)
            b = right_hand_sides(A.shape[0], scalar)
            options = {"hermitian": hermitian} if kind == "ldlt" else {}
            gs.cache_clear()
            facts = {"input": digest(A, b)}
            facts |= of_factor(lambda A, kind=kind, options=options: MAKE[kind](A, **options), A, kind, b)
            facts |= {name: outcome(call) for name, call in of_routes(A, kind, b, hermitian)}
            yield kind if hermitian else f"{kind} symmetric", facts


def flat(facts: Facts) -> str:
    """In one line; errors are in brackets."""
    return " ".join(
        f"{name.replace(' ', '_')}={value if ' ' not in value else f'[{value}]'}" for name, value in facts.items()
    )


def collect_with(threads: int) -> dict[str, str]:
    entries = {}
    with threadpool_limits(threads, user_api="gpusplu"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, case in CASES.items():
            for scalar in "fdFD":
                for kind, facts in of_case(case, scalar):
                    entries[f"{name}, {scalar}, {kind}"] = flat(facts)
    return entries


def collect() -> dict[str, object]:
    """The same with one thread and with two, or the entry says so."""
    one, two = collect_with(1), collect_with(2)
    return {
        name: facts if facts == two[name] else f"{facts} BUT WITH TWO THREADS {two[name]}"
        for name, facts in one.items()
    }


def compare(known: dict[str, str], found: dict[str, str]) -> dict[str, list[str]]:
    """Which facts differ."""
    from .records import differing

    def parts(line: str | None) -> dict[str, str] | None:
        return None if line is None else dict(part.partition("=")[::2] for part in split(line))

    names = sorted(known.keys() | found.keys())
    pairs = {name: differing(parts(known.get(name)), parts(found.get(name))) for name in names}
    return {name: lines for name, lines in pairs.items() if lines}


def split(line: str) -> list[str]:
    """The facts of a line: at spaces outside of brackets."""
    found: list[str] = []
    for word in line.split(" "):
        if found and found[-1].count("[") > found[-1].count("]"):
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found
