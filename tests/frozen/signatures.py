"""Parameters of public names."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

#: Modules that users import; those of packages that are not installed have no entries.
MODULES = ("gpusplu", "gpusplu.linalg", "gpusplu.errors", "gpusplu.gallery", "gpusplu.typing", "gpusplu.plotting")
OPTIONAL = {"gpusplu.torch": "torch", "gpusplu.jax": "jax", "gpusplu.distributed": "numpy"}

OPERATORS = {"__call__", "__getitem__", "__iter__", "__len__"}
#: Members without an underscore that are there for other modules of gpusplu.
INTERNAL = {"again", "choice", "entries", "hold", "make", "replace_core", "migrated_to"}
INTERNAL |= {"partial_factor", "parts", "size", "compatible_with", "tree_flatten", "tree_unflatten", "version"}


def public(module: Any) -> list[str]:
    """`__all__`, or what is defined there; of gpusplu.linalg only what SciPy does not have as it is."""
    if module.__name__ == "gpusplu.linalg":
        return ["analyze", "cholesky", "explain", "factorized", "ldlt", "splu", "spsolve"]
    names = getattr(module, "__all__", None)
    if names is None:
        names = [n for n, v in vars(module).items() if getattr(v, "__module__", "").startswith(module.__name__)]
    return sorted(name for name in names if not name.startswith("_"))


def parameters(function: Any) -> str:
    """Names, kinds and defaults; annotations may move."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return "no signature"
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def described(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if inspect.ismodule(value):
        yield name, "module"
    elif inspect.isclass(value):
        if issubclass(value, Exception):
            known = ("builtins", "numpy", "gpusplu.errors")
            bases = [base.__name__ for base in value.__mro__[1:-3] if base.__module__.startswith(known)]
            yield name, f"exception, of {', '.join(bases)}; {parameters(value)}"
            return
        yield name, "class"  # which functions make objects of
        ours = {member for base in value.__mro__ if base.__module__.startswith("gpusplu") for member in vars(base)}
        for member in sorted(ours - INTERNAL):
            if not member.startswith("_") or member in OPERATORS:
                yield from of_member(f"{name}.{member}", inspect.getattr_static(value, member))
    elif callable(value) and not hasattr(value, "__origin__"):
        yield name, parameters(value)
    else:
        yield name, " ".join(str(value).split()) if name.startswith("gpusplu.typing") else type(value).__name__


def of_member(name: str, member: Any) -> Iterator[tuple[str, str]]:
    if isinstance(member, property):
        yield name, "property" if member.fset is None else "property that can be set"
    elif isinstance(member, (staticmethod, classmethod)):
        yield name, parameters(member.__func__)
    elif inspect.isfunction(member):
        yield name, parameters(member)
    else:
        yield name, "attribute"


def collect() -> dict[str, str]:
    entries: dict[str, str] = {}
    for path in (*MODULES, *OPTIONAL):
        try:
            import_module(OPTIONAL.get(path, path))
            module = import_module(path)
        except ImportError:
            continue
        for name in public(module):
            entries |= dict(described(f"{path}.{name}", getattr(module, name)))
    return entries


def compare(known: dict[str, str], found: dict[str, str]) -> dict[str, list[str]]:
    """Modules that this environment has no package for are not compared."""
    from .records import compare

    missing = tuple(f"{path}." for path in OPTIONAL if not any(name.startswith(f"{path}.") for name in found))
    return compare({name: text for name, text in known.items() if not missing or not name.startswith(missing)}, found)
