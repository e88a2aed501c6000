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
from gpusplu.common.timing import backward_error
from gpusplu.dispatch.selection import AUTO, engine_names, read_request
from gpusplu.engines import registry

from .report import add_output, describe, print_json

INSTRUCTIONS = {
    0: "the compiler's baseline",
    2: "x86-64-v2 (SSE4.2)",
    3: "x86-64-v3 (AVX2, FMA)",
    4: "x86-64-v4 (AVX-512)",
}
SELF_TESTS = {  # a circuit, a finite element matrix, a saddle point
    "splu": partial(gallery.rlc_mesh, 15, 15),
    "cholesky": partial(gallery.elasticity, 4, 4, 4),
    "ldlt": partial(gallery.kkt, 60, 20, barrier=0.1),
}


def add_parser(commands: Any) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("doctor", help="show what is installed and which engines can run, and test them")
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
        print(title, *(f"  {name:<12} {value}" for name, value in found), sep="\n")
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
        (f"{name} {dtype}{'' if engine == registry.DEFAULT else f' {engine}'}", partial(check, name, dtype, engine))
        for engine in [name for name, state in engines() if state == "available"]
        for dtype in ("float32", "float64", "complex64", "complex128")
        for name in SELF_TESTS
        if name.replace("splu", "lu") in registry.named(engine).capabilities.kinds
    ]


def check(name: str, dtype: str, engine: str) -> tuple[float, float]:
    """Factor, refactor and solve, LU also with the transposed matrix; complex for ldlt means complex symmetric."""
    A = SELF_TESTS[name]().astype(dtype)
    if A.dtype.kind == "c":
        turn = np.exp(1j * np.arange(A.shape[0])).astype(dtype)
        other = turn.conj() if name == "cholesky" else turn
        A = sp.csc_array(sp.diags_array(turn) @ A @ sp.diags_array(other))
    b = np.ones(A.shape[0], dtype)
    factor = getattr(gpusplu, name)(A, engine=engine)
    A.data *= np.linspace(1, 2, A.nnz).astype(dtype) if name == "splu" else 2
    factor.refactor(A.data)
    systems = (("N", A), ("T", A.T), ("H", A.conj().T)) if name == "splu" else (("N", A),)
    errors = [backward_error(M, factor.solve(b, trans), b) for trans, M in systems]
    return max(errors), 100 * float(np.finfo(dtype).eps)
