"""``doctor``: what is installed, what can run, and whether it works."""

import argparse
import importlib
import os
import platform
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp

import gpusplu
from gpusplu import gallery
from gpusplu.common.installed import install_hint
from gpusplu.dispatch.request import AUTO, engine_names, read_request
from gpusplu.engines import registry

from .arguments import add_output
from .report import backward_error, describe, print_json

INSTRUCTIONS = {
    0: "the compiler's baseline",
    2: "x86-64-v2 (SSE4.2)",
    3: "x86-64-v3 (AVX2, FMA)",
    4: "x86-64-v4 (AVX-512)",
}


def add_parser(commands: Any) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("doctor", help="say what is installed and which engines can run, and test them")
    add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; 1 if a self-test failed."""
    sections = {"installed": installed(), "machine": machine(), "engines": engines()}
    if arguments.json:
        tests = [tested(name, test) for name, test in self_tests()]
        print_json({**{title: dict(found) for title, found in sections.items()}, "self_test": tests})
        return 0 if all(test["passed"] for test in tests) else 1
    for title, found in sections.items():
        print(title)
        for name, value in found:
            print(f"  {name:<12} {value}")
    print("self-test")
    healthy = True
    for name, test in self_tests():
        result = tested(name, test)
        healthy &= result["passed"]
        text = result["failure"] or f"backward error {result['backward_error']:.1e}"
        print(f"  {name:<31} {'ok    ' if result['passed'] else 'FAILED'} {text}", flush=True)
    return 0 if healthy else 1


def tested(name: str, test: Callable[[], tuple[float, float]]) -> dict[str, Any]:
    """Result of a self-test."""
    try:
        error, limit = test()
    except Exception as failure:  # on any error the other tests still run
        text = f"{type(failure).__name__}: {describe(failure)}"
        return {"name": name, "passed": False, "backward_error": None, "failure": text}
    return {"name": name, "passed": bool(error <= limit), "backward_error": error, "failure": ""}


def installed() -> list[tuple[str, str]]:
    """Names and versions."""
    blas = scipy.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return [
        ("gpusplu", gpusplu.__version__),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("SciPy", scipy.__version__),
        ("BLAS", f"{blas['name']} {blas['version']}, SciPy's"),
        ("CuPy", cupy_version()),
    ]


def cupy_version() -> str:
    """CuPy's version, or why there is none."""
    try:
        return str(importlib.import_module("cupy").__version__)
    except ImportError:
        return f"not installed ({install_hint('cuda13', 'cuda12')})"


def machine() -> list[tuple[str, str]]:
    """Processor, threads, device."""
    from gpusplu import _core

    limit = os.environ.get("GPUSPLU_NUM_THREADS")
    return [
        ("platform", f"{platform.system()} {platform.machine()}"),
        ("processors", str(processors())),
        ("threads", f"{_core.num_threads()}" + (f" (GPUSPLU_NUM_THREADS={limit})" if limit else "")),
        ("instructions", INSTRUCTIONS[_core.simd_level()]),
        ("GPU", devices()),
    ]


def processors() -> int:
    """Number of processors that this process may use, else of the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def devices() -> str:
    """The CUDA devices, or why there is none."""
    try:
        runtime = importlib.import_module("cupy").cuda.runtime
        names = [runtime.getDeviceProperties(k)["name"].decode() for k in range(runtime.getDeviceCount())]
    except ImportError:
        return "none: CuPy is not installed"
    except Exception as error:  # CUDA's own exceptions exist only where CuPy does
        return f"none: {describe(error)}"
    return ", ".join(names) or "none"


def engines() -> list[tuple[str, str]]:
    """Each engine, with the reason if it is unavailable."""
    found = []
    for name in engine_names():
        try:
            request = read_request(name)
            if request.engine == AUTO:
                text = "runs the one with the least predicted seconds"
            else:
                text = f"runs {request.engine}: {request.reason}" if name == AUTO else "available"
            found.append((name, text))
        except gpusplu.GpuspluError as error:
            found.append((name, f"not available: {describe(error)}"))
    return found


def self_tests() -> list[tuple[str, Callable[[], tuple[float, float]]]]:
    """Name and test of each engine, factorization and number type; a test returns its backward error and the limit."""
    return [
        (
            f"{name} {dtype}" + (f" {engine}" if engine != registry.DEFAULT else ""),
            partial(check, np.dtype(dtype), engine),
        )
        for engine in [name for name, state in engines() if state == "available"]
        for dtype in ("float32", "float64", "complex64", "complex128")
        for name, kind, check in (
            ("splu", "lu", check_splu),
            ("cholesky", "cholesky", check_cholesky),
            ("ldlt", "ldlt", check_ldlt),
        )
        if kind in registry.named(engine).kinds
    ]


def check_splu(dtype: np.dtype[Any], engine: Any = registry.DEFAULT) -> tuple[float, float]:
    """Factor, refactor and solve an unsymmetric circuit: plain, transposed, conjugate transposed."""
    A = gallery.rlc_mesh(15, 15).astype(dtype)
    if A.dtype.kind == "c":
        A.data *= np.exp(1j * np.arange(A.nnz)).astype(dtype)
    b = np.ones(A.shape[0], dtype)
    lu = gpusplu.splu(A, engine=engine)
    A.data *= np.linspace(1, 2, A.nnz).astype(dtype)
    lu.refactor(A.data)
    solutions = ((A, lu.solve(b)), (A.T, lu.solve(b, "T")), (A.conj().T, lu.solve(b, "H")))
    return max(backward_error(M, x, b) for M, x in solutions), limit(dtype)


def check_cholesky(dtype: np.dtype[Any], engine: Any = registry.DEFAULT) -> tuple[float, float]:
    """Factor, refactor and solve a finite element matrix, made Hermitian for complex numbers."""
    K = gallery.elasticity(4, 4, 4).astype(dtype)
    if K.dtype.kind == "c":
        turn = np.exp(1j * np.arange(K.shape[0])).astype(dtype)
        K = sp.csc_array(sp.diags_array(turn) @ K @ sp.diags_array(turn.conj()))
    b = np.ones(K.shape[0], dtype)
    factor = gpusplu.cholesky(K, engine=engine)
    K.data *= 2
    factor.refactor(K.data)
    return backward_error(K, factor.solve(b), b), limit(dtype)


def check_ldlt(dtype: np.dtype[Any], engine: Any = registry.DEFAULT) -> tuple[float, float]:
    """Factor, refactor and solve a saddle point, made complex symmetric for complex numbers."""
    K = gallery.kkt(60, 20, barrier=0.1).astype(dtype)
    if K.dtype.kind == "c":
        turn = np.exp(1j * np.arange(K.shape[0])).astype(dtype)
        K = sp.csc_array(sp.diags_array(turn) @ K @ sp.diags_array(turn))
    b = np.ones(K.shape[0], dtype)
    factor = gpusplu.ldlt(K, engine=engine)
    K.data *= 2
    factor.refactor(K.data)
    return backward_error(K, factor.solve(b), b), limit(dtype)


def limit(dtype: np.dtype[Any]) -> float:
    """The largest accepted backward error."""
    return 100 * float(np.finfo(dtype).eps)
