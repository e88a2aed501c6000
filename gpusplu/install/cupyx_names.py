"""CuPy's functions that install() is about, found without importing CuPy, and a watch for somebody else's import."""

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
    """Those that are there now by name, under whatever somebody has wrapped around them."""
    found = namespace()
    made = {name: unwrap(found[name], stop=is_cupys) for name in NAMES if callable(found.get(name))}
    return {name: function for name, function in made.items() if is_cupys(function)}


def is_cupys(function: Any) -> bool:
    """Whether CuPy made it, as a function whose body can be another."""
    return isinstance(function, FunctionType) and function.__globals__.get("__name__", "").partition(".")[0] == "cupyx"


def namespace() -> dict[str, Any]:
    """Of the module, as far as it is there; one that is to be loaded when it is used is not woken."""
    module = sys.modules.get(MODULE)
    return object.__getattribute__(module, "__dict__") if isinstance(module, ModuleType) else {}


def wait_for_import() -> bool:
    """Return when no other thread is in the middle of importing the module, and whether one was."""
    if not getattr(namespace().get("__spec__"), "_initializing", False):
        return False
    with suppress(Exception):  # that thread's, too
        import_module(MODULE)
    return True


class Watch:
    """A finder of modules that finds none itself, and says when the module has been imported or loaded again."""

    def __init__(self, imported: Callable[[], None]):
        self._imported = imported

    def begin(self) -> None:
        """Be there from now on; to be called by one thread at a time.

        A finder is not taken away again: a thread that goes through the list at that moment would miss the next one.
        """
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """What the finders after this one find, with a loader that tells."""
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
    """Another loader, and what is to be done after it."""

    def __init__(self, loader: Any, loaded: Callable[[], None]):
        self._loader, self._loaded = loader, loaded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader  # the module's own
        self._loader.exec_module(module)
        self._loaded()
