"""How many Python functions of gpusplu a call runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import gpusplu as gs

PACKAGE = str(Path(gs.__file__).parent)


def count(call: Callable[[], Any]) -> int:
    """Calls of functions in the package's files while `call` runs."""
    found = 0

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal found
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found += 1

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def cases() -> dict[str, Callable[[], Any]]:
    A = sp.csc_array(gs.gallery.poisson(10, 10))
    K = sp.csc_array(gs.gallery.kkt(70, 30))
    b = np.ones(100)
    rows, columns = A.tocsr(), np.ones((100, 3))
    values = np.stack([A.data, 2 * A.data])
    lu, cholesky, ldlt, batch = gs.splu(A), gs.cholesky(A), gs.ldlt(K), gs.splu_batch(A, values)
    symbolic = gs.analyze(A)
    return {
        "spsolve": lambda: gs.spsolve(A, b),
        "spsolve of a csr": lambda: gs.spsolve(rows, b),
        "splu": lambda: gs.splu(A),
        "splu, static pivoting": lambda: gs.splu(A, pivoting="static"),
        "splu, engine cpu": lambda: gs.splu(A, engine="cpu"),
        "splu, a permutation": lambda: gs.splu(A, ordering=np.arange(100)),
        "cholesky": lambda: gs.cholesky(A),
        "ldlt": lambda: gs.ldlt(K),
        "factorized": lambda: gs.factorized(A),
        "analyze": lambda: gs.analyze(A),
        "Symbolic.factor": lambda: symbolic.factor(A.data),
        "splu_batch": lambda: gs.splu_batch(A, values),
        "solve": lambda: lu.solve(b),
        "solve, columns": lambda: lu.solve(columns),
        "solve, transposed": lambda: lu.solve(b, "T"),
        "refactor": lambda: lu.refactor(A.data),
        "refactor with a matrix": lambda: lu.refactor(A),
        "refactor_solve": lambda: lu.refactor_solve(A.data, b),
        "Cholesky, solve": lambda: cholesky.solve(b),
        "Cholesky, refactor": lambda: cholesky.refactor(A.data),
        "ldlt, solve": lambda: ldlt.solve(b),
        "ldlt, refactor": lambda: ldlt.refactor(K.data),
        "batch, solve": lambda: batch.solve(b),
        "batch, refactor": lambda: batch.refactor(values),
        "L": lambda: lu.L,
        "slogdet": lambda: lu.slogdet(),
        "installed splu": lambda: sla.splu(A),
        "installed spsolve": lambda: sla.spsolve(A, b),
    }


def collect() -> dict[str, int]:
    """Of each call on a pattern that was met before, and of those that factor, on one that was not."""
    entries = {}
    for name, call in cases().items():
        with gs.enabled():
            for _ in range(3):  # imports, first use, the pattern
                call()
            entries[name] = count(call)
            gs.cache_clear()
            fresh = count(call)
            if fresh != entries[name]:
                entries[f"{name}, fresh pattern"] = fresh
    return entries


def compare(known: dict[str, int], found: dict[str, int]) -> dict[str, list[str]]:
    """Only what became more."""
    return {
        name: [f"{known.get(name, 'nothing')} -> {found.get(name, 'nothing')}"]
        for name in sorted(known.keys() | found.keys())
        if found.get(name, 0) > known.get(name, -1) and (name in known or not name.endswith("fresh pattern"))
    }
