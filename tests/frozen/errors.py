"""What wrong and unusual calls raise, warn and return."""

from __future__ import annotations

import io
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import gpusplu as gs

from .wrong_calls import CALLS

#: What differs from run to run: addresses, seconds, paths.
NORMALIZED = (
    (r"0x[0-9a-f]+", "0x#"),
    (r"/\S+/(?=\w+\.(py|so|npz)\b)", ""),
    (r"\b\d+(\.\d+)?(e[-+]?\d+)? ?(s|ms|us|ns|seconds)\b", "# s"),
)


def normalized(text: str) -> str:
    for pattern, replacement in NORMALIZED:
        text = re.sub(pattern, replacement, text)
    return text


def public_classes(kind: type) -> list[str]:
    """Names of a class's bases that users can name, the class first."""
    known = ("builtins", "numpy", "scipy", "gpusplu.errors")
    names = [base.__name__ for base in kind.__mro__ if base.__module__.startswith(known)]
    return names[: names.index("Exception")] if "Exception" in names else names


def described(value: Any) -> str:
    """Type, dtype, shape and order of a result; numbers are not told, which bits are about."""
    if isinstance(value, np.ndarray):
        order = "" if value.ndim < 2 else ", F" if value.flags.f_contiguous else ", C"
        finite = "" if value.dtype.kind not in "fc" or np.isfinite(value).all() else ", not finite"
        return f"{type(value).__name__} {value.dtype} {value.shape}{order}{finite}"
    if sp.issparse(value):
        return f"{type(value).__name__} {value.dtype} {value.shape}, {value.nnz} entries, {value.indices.dtype}"
    if isinstance(value, tuple):
        return f"{type(value).__name__} of {', '.join(map(described, value))}"
    if isinstance(value, (bool, int, str, type(None))):
        return repr(value)
    if isinstance(value, (float, complex)):
        return type(value).__name__
    if isinstance(value, type):
        return f"class {value.__name__}"
    if isinstance(value, list) and len(value) < 20:
        return repr(value)
    if isinstance(value, (np.number, dict, list)) or (callable(value) and not hasattr(value, "solve")):
        return type(value).__name__
    return type(value).__name__ if " object at " in repr(value) else f"{type(value).__name__}: {value!r}"


def observed(call: Callable[[], Any]) -> dict[str, str]:
    """What a caller sees."""
    gs.cache_clear()
    gs.uninstall()
    seen: dict[str, str] = {}
    with warnings.catch_warnings(record=True) as caught, redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            seen["returns"] = normalized(described(call()))
        except Exception as error:
            seen["raises"] = f"{' < '.join(public_classes(type(error)))}: {normalized(str(error))}"
            for k, note in enumerate(getattr(error, "__notes__", ())):
                seen[f"note {k + 1}"] = normalized(note)
    for k, warning in enumerate(caught):
        where = "" if Path(warning.filename).parent == Path(__file__).parent else ", not at the caller's line"
        seen[f"warning {k + 1}"] = f"{warning.category.__name__}: {normalized(str(warning.message))}{where}"
    return seen


def collect() -> dict[str, object]:
    modules = {name: sys.modules.get(name) for name in ("cupy", "cupyx")}
    sys.modules.update(dict.fromkeys(modules))  # None: they cannot be imported
    try:
        return {name: observed(call) for name, call in CALLS.items()}
    finally:
        for name, module in modules.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
