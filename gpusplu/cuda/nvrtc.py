"""Kernel files -> machine code, through NVRTC; needs neither a GPU nor CuPy.

A file is compiled once per scalar, kind of factorization and architecture. gpusplu sets all flags (`flags`): denormals
stay, divisions and square roots are rounded correctly, a * b + c may be one operation.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ..common.installed import install_hint
from ..errors import ON_HOST, EngineUnavailableError, GpuspluError

FOLDER = Path(__file__).parents[1] / "kernels"
# Kinds of factorization, as kernels number them (kernels/common/device.cuh).
LU, CHOLESKY, HERMITIAN, SYMMETRIC = range(4)  # the last two: LDL^T
# Files and folders that are compiled for LU only: they do not depend on the kind of factorization, or only LU needs
# them.
ONE_KIND = (
    "columns/",
    "common/",
    "fronts/devices.cu",
    "fronts/diagonal.cu",
    "fronts/solve_transposed.cu",
    "lockstep/lanes.cu",
    "lockstep/measure.cu",
)
# Files of another kind that LDL^T uses unchanged.
STAND_IN = {
    ("fronts/complement.cu", HERMITIAN): CHOLESKY,
    ("fronts/solve_fronts.cu", HERMITIAN): CHOLESKY,
    ("fronts/solve_large.cu", HERMITIAN): LU,
    ("fronts/solve_large.cu", SYMMETRIC): LU,
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


class CompileError(GpuspluError, RuntimeError):
    """NVRTC refused a kernel file, or warned about it."""


def kernel_kind(kind: str, hermitian: bool) -> int:
    """The number of a factorization's kind."""
    return {"lu": LU, "cholesky": CHOLESKY, "ldlt": HERMITIAN if hermitian else SYMMETRIC}[kind]


def kind_of(file: str, scalar: str, kind: int) -> int:
    """The kind that `file` is compiled for if a factorization of kind `kind` uses it."""
    if file.startswith(ONE_KIND):
        return LU
    if kind == SYMMETRIC and scalar in "fd":
        kind = HERMITIAN
    return STAND_IN.get((file, kind), kind)


def sources(file: str) -> dict[str, str]:
    """Text of `file` and of every file of gpusplu that it includes."""
    texts: dict[str, str] = {}
    todo = [file]
    while todo:
        name = todo.pop()
        if name not in texts and (FOLDER / name).exists():
            texts[name] = (FOLDER / name).read_text()
            todo += INCLUDE.findall(texts[name])
    return texts


def flags(scalar: str, kind: int, arch: int) -> tuple[str, ...]:
    """Flags for NVRTC.

    Parameters
    ----------
    scalar : {"f", "d", "F", "D"}
    kind : {0, 1, 2, 3}
    arch : int
        Compute capability, 90 for 9.0.
    """
    supported = nvrtc().architectures
    target = f"sm_{arch}" if arch in supported else f"compute_{max(a for a in supported if a < arch)}"
    return (
        f"--gpu-architecture={target}",
        "--std=c++17",
        "--ftz=false",
        "--prec-div=true",
        "--prec-sqrt=true",
        "--fmad=true",
        f"-DSCALAR_{scalar}",
        f"-DKIND={kind}",
    )


def compile_kernels(file: str, scalar: str, kind: int, arch: int, *more: str) -> bytes:
    """Compile one kernel file, with `more` options; machine code, or PTX if this NVRTC does not support `arch` yet.

    Raises
    ------
    CompileError
        With NVRTC's messages; warnings count.
    """
    options = (*flags(scalar, kind, arch), f"--include-path={FOLDER}", *more)
    return nvrtc().compile(file, (FOLDER / file).read_text(), options)


class Nvrtc:
    """The library, through ctypes.

    Attributes
    ----------
    version : tuple of int
    architectures : tuple of int
        For which it generates machine code.
    """

    def __init__(self, path: str):
        self._library = ctypes.CDLL(path)
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)
        # NVRTC 13.0 searches for this library only in the loader's paths, unless it has been loaded.
        builtins = Path(path).with_name(f"libnvrtc-builtins.so.{major.value}.{minor.value}")
        if builtins.exists():
            ctypes.CDLL(str(builtins))
        self._call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        found = (ctypes.c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", found)
        self.architectures = tuple(found)

    def _call(self, function: str, *arguments: object) -> None:
        status = self._library[function](*arguments)
        if status:
            raise CompileError(f"{function}: {self._library.nvrtcGetErrorString(status).decode()}")

    def _output(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        output = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", program, output)
        return output.raw

    def compile(self, name: str, source: str, options: tuple[str, ...]) -> bytes:
        """Machine code of `source`, or PTX if `options` ask for a virtual architecture."""
        program = ctypes.c_void_p()
        self._call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
        try:
            arguments = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            status = self._library.nvrtcCompileProgram(program, len(options), arguments)
            log = self._output(program, "ProgramLog").rstrip(b"\0\n ").decode()
            if status or log:
                raise CompileError(f"{name} {' '.join(options)}:\n{log}")
            return self._output(program, "PTX" if "compute_" in options[0] else "CUBIN")
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))


@cache
def nvrtc() -> Nvrtc:
    """The newest NVRTC found.

    Raises
    ------
    EngineUnavailableError
        There is none.
    """
    for path in candidates():
        try:
            return Nvrtc(path)
        except OSError:
            continue
    raise EngineUnavailableError(
        "GPU engines compile their kernels with NVRTC, which was not found; "
        f"{install_hint('cuda13', 'cuda12')}, or pass {ON_HOST}"
    )


def candidates() -> Iterator[str]:
    """Possible locations of NVRTC: NVIDIA's wheels, the loader's paths, toolkits."""
    names = ("libnvrtc.so.13", "libnvrtc.so.12")
    spec = find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for name in names:
            yield from map(str, Path(folder).glob(f"*/lib/{name}"))
    yield from names
    for variable in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX"):
        for name in names if variable in os.environ else ():
            yield from (str(Path(os.environ[variable], lib, name)) for lib in ("lib64", "lib"))
    yield from (f"/usr/local/cuda/lib64/{name}" for name in names)
