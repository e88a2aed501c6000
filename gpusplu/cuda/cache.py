"""Compiled kernels on disk, under a key that covers all inputs of the compilation."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from .nvrtc import compile_kernels, flags, nvrtc, sources


def folder() -> Path:
    """Folder of compiled kernels: $GPUSPLU_CACHE_DIR, else gpusplu in $XDG_CACHE_HOME or ~/.cache."""
    if "GPUSPLU_CACHE_DIR" in os.environ:
        return Path(os.environ["GPUSPLU_CACHE_DIR"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpusplu"


def key(file: str, scalar: str, kind: int, arch: int) -> str:
    """Hash of the text of `file` and of every header it includes, of the flags and of NVRTC's version."""
    digest = hashlib.sha256(repr((nvrtc().version, flags(scalar, kind, arch))).encode())
    for name, text in sorted(sources(file).items()):
        digest.update(repr((name, text)).encode())
    return digest.hexdigest()[:32]


def place(file: str, scalar: str, kind: int, arch: int) -> Path:
    """Path of the machine code of `file` in the cache."""
    return folder() / f"{Path(file).stem}-{scalar}{kind}-{arch}-{key(file, scalar, kind, arch)}.bin"


def kernels(file: str, scalar: str, kind: int, arch: int) -> bytes:
    """Machine code of `file`, compiled if it is not in the cache; see `compile_kernels`.

    Several processes may call this concurrently: a finished file appears under its name in one step. If the folder is
    not writable, nothing is stored.
    """
    path = place(file, scalar, kind, arch)
    try:
        return path.read_bytes()
    except OSError:
        code = compile_kernels(file, scalar, kind, arch)
    with suppress(OSError):
        write(path, code)
    return code


def write(path: Path, content: bytes) -> None:
    """Write a file that appears under its name in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, delete=False) as partial:
        partial.write(content)
    os.replace(partial.name, path)
