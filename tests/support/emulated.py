"""The kernels of gpusplu compiled for this machine's processor by the emulator, so that they run without a GPU."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from gpusplu.cuda import nvrtc

KERNELS = nvrtc.FOLDER
EMULATOR = Path(__file__).parent / "emulator"
MACHINE = threading.Lock()  # the emulator has one, whatever library a kernel is in
SANITIZED = "GPUSPLU_SANITIZED_KERNELS" in os.environ  # all of them; the sanitizer has to be preloaded (.ci/sanitize)


class EmulationError(RuntimeError):
    """A kernel trapped, deadlocked, diverged at a barrier or wrote past its shared memory."""


class Launch(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint) for name in ("grid", "block", "shared_bytes", "seed")]


class Library:
    """The kernels of one file for one scalar and kind."""

    def __init__(self, path: Path):
        self._library = ctypes.CDLL(str(path))

    def args_bytes(self, kernel: str) -> int:
        """Size of the struct that `kernel` takes [bytes]."""
        return int(self._library[f"args_bytes_{kernel}"]())

    def launch(self, kernel: str, grid: int, block: int, shared_bytes: int, args: np.ndarray, seed: int = 0) -> None:
        """Run `grid` blocks of `block` threads; `seed` other than 0 shuffles the order of threads and blocks.

        Raises
        ------
        EmulationError
        """
        assert args.dtype.itemsize == self.args_bytes(kernel), (args.dtype.itemsize, self.args_bytes(kernel))
        function = self._library[f"emulate_{kernel}"]
        function.restype = ctypes.c_char_p
        record = np.ascontiguousarray(args)
        arguments = ctypes.byref(Launch(grid, block, shared_bytes, seed)), ctypes.c_void_p(record.ctypes.data)
        with MACHINE:
            error = function(*arguments)
        if error:
            raise EmulationError(f"{kernel}: {error.decode()}")


def compiler() -> str | None:
    return os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")


@cache
def compile(
    file: str, scalar: str = "d", kind: int = 0, defines: Sequence[str] = (), sanitize: bool = False
) -> Library:
    """Compile kernels/`file`; `scalar` is one of f d F D.

    The library is kept in the temporary directory under a hash of its sources, for all checkouts.
    """
    flags = ["-std=c++17", "-O1", "-g1", "-fPIC", "-shared", "-w", "-x", "c++", "-DGPUSPLU_EMULATED"]
    flags += [f"-DSCALAR_{scalar}", f"-DKIND={kind}", *(f"-D{d}" for d in defines)]
    # A GPU stops at addresses that this processor reads and writes.
    kinds = "address,undefined" if sanitize or SANITIZED else "alignment"
    flags += [f"-fsanitize={kinds}", "-fno-sanitize-recover=undefined"]
    texts = sorted(nvrtc.sources(file).items()), [path.read_text() for path in sorted(EMULATOR.glob("*.hpp"))]
    digest = hashlib.sha256(repr((compiler(), flags, texts)).encode())
    cache_dir = Path(tempfile.gettempdir()) / f"gpusplu-emulated-{os.getuid()}"
    cache_dir.mkdir(exist_ok=True)
    library = cache_dir / f"{Path(file).stem}-{digest.hexdigest()[:20]}.so"
    if not library.exists():
        partial = library.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        command = [str(compiler()), *flags, f"-I{EMULATOR}", f"-I{KERNELS}", str(KERNELS / file), "-o", str(partial)]
        subprocess.run(command, check=True, env={**os.environ, "LD_PRELOAD": ""})
        partial.rename(library)
    return Library(library)
