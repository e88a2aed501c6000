"""Matrices and vectors in files: Matrix Market (``.mtx``, ``.mtx.gz``), SciPy's ``.npz``, NumPy's ``.npy``."""

import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from gpusplu import gallery
from gpusplu.common.matrix import float_dtype

from .report import CommandError, describe

SOLUTIONS = (".npy", ".mtx")
MATRICES = (".mtx", ".mtx.gz", ".npz")


def kind(path: Path) -> str:
    """The extension; ``.gz`` is combined with the extension before it."""
    suffixes = path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]
    return "".join(suffixes).lower()


def require_kind(path: Path, kinds: tuple[str, ...]) -> None:
    if kind(path) not in kinds:
        raise CommandError(f"{path}: the extension is not one of {', '.join(kinds)}")


def read(path: Path, kinds: tuple[str, ...]) -> Any:
    """Read a file by its extension."""
    if path.is_dir():
        raise CommandError(f"{path}: is a folder")
    require_kind(path, kinds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if kind(path) == ".npy":
                return np.load(path, allow_pickle=False)
            if kind(path) != ".npz":
                return read_apart(path)
            A = sp.load_npz(path)
            if hasattr(A, "check_format"):
                A.check_format(full_check=True)  # conversions rely on it
            return A
    except FileNotFoundError:
        raise CommandError(f"{path}: no such file") from None
    except Exception as error:  # readers raise any exception for damaged files
        raise CommandError(f"{path}: not a readable {kind(path)} file: {describe(error)}") from None


def read_apart(path: Path) -> Any:
    """Read a Matrix Market file in a separate process."""
    path.stat()
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "matrix.npz"
        command = [sys.executable, "-P", str(Path(__file__).with_name("reader.py")), os.fspath(path), str(target)]
        reader = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if reader.returncode < 0:
            raise ValueError(f"SciPy's reader crashed on it (signal {-reader.returncode})")
        if reader.returncode:
            said = reader.stderr.decode(errors="replace").strip().splitlines()
            raise ValueError(said[-1] if said else "SciPy's reader failed")
        with np.load(target) as arrays:
            if "row" not in arrays:
                return arrays["data"]
            return sp.coo_array((arrays["data"], (arrays["row"], arrays["col"])), shape=tuple(arrays["shape"].tolist()))


def require_memory(path: Path, shape: tuple[int, ...], nbytes: int) -> None:
    """Refuse arrays that need more memory than the machine has, before the system kills the process."""
    if nbytes > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        raise CommandError(f"{path}: {' x '.join(map(str, shape))} is too large for the memory of this machine")


def require_numbers(path: Path, dtype: np.dtype) -> None:
    """Refuse dtypes that solvers do not have and that cannot be converted to one of theirs."""
    if dtype.kind not in "biufc":
        raise CommandError(f"{path}: the entries are not numbers but {dtype}")
    try:
        float_dtype(dtype)
    except TypeError as error:
        raise CommandError(f"{path}: {describe(error)}") from None


def read_matrix(path: Path) -> sp.csc_array:
    """Read a square matrix of finite numbers."""
    A = read(path, MATRICES)
    require_numbers(path, A.dtype)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise CommandError(f"{path}: the matrix is not square: {' x '.join(map(str, A.shape))}")
    require_memory(path, A.shape, 16 * A.shape[0])  # of column pointers
    A = sp.csc_array(A)
    if not np.all(np.isfinite(A.data)):
        A.sum_duplicates()
        bad = np.flatnonzero(~np.isfinite(A.data))[0]
        place = f"row {A.indices[bad] + 1}, column {np.searchsorted(A.indptr, bad, side='right')}"
        raise CommandError(f"{path}: entry {A.data[bad]} at {place} (counted from 1)")
    return A


def matrix_of(name: str) -> sp.csc_array:
    """The matrix in a file, or of the gallery with this name, in floating point."""
    path = Path(name)
    if ":" in name and not path.exists() and kind(path) not in MATRICES:
        try:
            return gallery.named(name)
        except ValueError as error:
            raise CommandError(f"{name}: {describe(error)}") from None
    A = read_matrix(path)
    return A.astype(float) if A.dtype.kind in "biu" else A


def read_rhs(path: Path, n: int) -> np.ndarray:
    """Read one or more right-hand sides of n rows as a dense array."""
    b = read(path, (*MATRICES, ".npy"))
    if b.ndim == 2:
        require_memory(path, b.shape, b.dtype.itemsize * b.shape[0] * b.shape[1])
    b = b.toarray() if sp.issparse(b) else np.asarray(b)
    require_numbers(path, b.dtype)
    if b.ndim not in (1, 2) or b.shape[0] != n:
        raise CommandError(f"{path}: the right-hand side is {' x '.join(map(str, b.shape))}, the matrix has {n} rows")
    if not np.all(np.isfinite(b)):
        raise CommandError(f"{path}: the right-hand side has entries that are not finite")
    return b[:, 0] if b.ndim == 2 and b.shape[1] == 1 else b


def check_output(path: Path, kinds: tuple[str, ...]) -> None:
    """Refuse a path that cannot be written, before any work is done."""
    require_kind(path, kinds)
    if not path.parent.is_dir():
        raise CommandError(f"{path}: no such folder")


def write_solution(path: Path, x: np.ndarray) -> None:
    """Write x by the extension of the file."""
    try:
        if kind(path) == ".npy":
            np.save(path, x)
        else:
            with open(path, "wb") as file:  # NumPy itself accepts only names in UTF-8
                scipy.io.mmwrite(file, x if x.ndim == 2 else x[:, None], precision=17)
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {describe(error)}") from None
