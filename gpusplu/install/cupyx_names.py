"""CuPy's functions that install() replaces, found without an import of CuPy, and a hook for imports by other code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from inspect import unwrap
from types import FunctionType, ModuleType
from typing import Any

NAMES = ("splu", "spsolve", "factorized")
MODULE = "cupyx.scipy.sparse.linalg"


def functions() -> dict[str, FunctionType]:
    """The functions imported so far, by name, without wrappers of other code."""
    found = namespace()
    made = {name: unwrap(found[name], stop=is_cupys) for name in NAMES if callable(found.get(name))}
    return {name: function for name, function in made.items() if is_cupys(function)}


def is_cupys(function: Any) -> bool:
    """Whether it is a Python function of CuPy, with a replaceable body."""
    return isinstance(function, FunctionType) and function.__globals__.get("__name__", "").partition(".")[0] == "cupyx"


def namespace() -> dict[str, Any]:
    """Namespace of the module as far as it is loaded; a lazy module is not loaded."""
    module = sys.modules.get(MODULE)
    return object.__getattribute__(module, "__dict__") if isinstance(module, ModuleType) else {}


def wait_for_import() -> bool:
    """Wait for an import of the module in another thread; returns whether there was one."""
    if not getattr(namespace().get("__spec__"), "_initializing", False):
        return False
    with suppress(Exception):  # the other thread gets the same exception
        import_module(MODULE)
    return True


class Watch:
    """A module finder that finds no modules itself and reports when the module has been imported or reloaded."""

    def __init__(self, imported: Callable[[], None]):
        self._imported = imported

    def begin(self) -> None:
        """Add the finder; callers must call this from one thread at a time.

        The finder is never removed: a thread that iterates over the list at that moment would skip the next finder.
        """
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """The spec that the later finders find, with a loader that reports."""
        if name != MODULE or self not in sys.meta_path:
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            find_spec = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find_spec(name, path, target) if find_spec else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = Loader(spec.loader, self._imported)  # type: ignore[assignment]
                return spec
        return None


class Loader:
    """Wraps another loader and calls a function after it."""

    def __init__(self, loader: Any, loaded: Callable[[], None]):
        self._loader, self._loaded = loader, loaded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader  # the module's own
        self._loader.exec_module(module)
        self._loaded()
