"""Files of records: written, read and compared."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import scipy

from gpusplu import _core

FOLDER = Path(__file__).parent / "records"
#: Differences that are printed.
MOST_SHOWN = 60
Entries = dict[str, object]


def compiler() -> str:
    """The compiler of the core, as it signs its objects."""
    found = re.search(rb"GCC: \([^)]*\) [\d.]+|clang version [\d.]+", Path(_core.__file__).read_bytes())
    return found.group().decode() if found else "unknown"


def arithmetic() -> dict[str, str]:
    return {"machine": platform.machine(), "compiler": compiler(), "libc": " ".join(platform.libc_ver())}


def versions() -> dict[str, str]:
    def short(version: str) -> str:
        return ".".join(version.split(".")[:2])

    return {
        "python": short(platform.python_version()),
        "numpy": short(np.__version__),
        "scipy": short(scipy.__version__),
    }


def level() -> str:
    return f"v{_core.simd_level()}"


#: What a part's file is called, and what has to be the same for a comparison.
KEYS: dict[str, tuple[Callable[[], str], Callable[[], dict[str, str]]]] = {
    "bits": (lambda: f"bits-{level()}", arithmetic),
    "device": (lambda: f"device-{level()}", arithmetic),
    "errors": (lambda: "errors", versions),
    "calls": (lambda: "calls", dict),
    "signatures": (lambda: "signatures", dict),
}


def run(part: str, write: bool) -> bool:
    """Write the records of a part, or compare with them; whether all is well."""
    name, made_with = (key() for key in KEYS[part])
    path = FOLDER / f"{name}.json"
    if not write and not path.exists():
        print(f"{part}: nothing compared, there is no {path.name}")
        return True
    known = json.loads(path.read_text()) if path.exists() else {"made with": {}, "entries": {}}
    if not write and known["made with"] != made_with:
        print(f"{part}: nothing compared, {path.name} was made with {known['made with']}, and this is {made_with}")
        return True
    module = import_module(f".{part}", __package__)
    entries: Entries = module.collect()
    differences = module.compare(known["entries"], entries) if hasattr(module, "compare") else {}
    if not hasattr(module, "compare"):
        differences = compare(known["entries"], entries)
    show(part, len(entries), differences)
    if write:
        text = json.dumps({"made with": made_with, "entries": entries}, indent=0, ensure_ascii=False, sort_keys=True)
        path.write_text(text + "\n")
        print(f"{part}: wrote {path}")
    return write or not differences


def compare(known: Entries, found: Entries) -> dict[str, list[str]]:
    """Lines about each entry that differs."""
    return {
        name: lines
        for name in sorted(known.keys() | found.keys())
        if (lines := differing(known.get(name), found.get(name)))
    }


def differing(known: object, found: object) -> list[str]:
    if known == found:
        return []
    if known is None or found is None:
        return ["is new" if known is None else "is gone"]
    if isinstance(known, dict) and isinstance(found, dict):
        keys = [key for key in {**known, **found} if known.get(key) != found.get(key)]
        return [f"{key}: {known.get(key, 'nothing')} -> {found.get(key, 'nothing')}" for key in keys]
    return [f"was  {known}", f"is   {found}"]


def show(part: str, count: int, differences: dict[str, list[str]]) -> None:
    print(f"{part}: {count} entries, {len(differences)} differ")
    for k, (name, lines) in enumerate(differences.items()):
        if k == MOST_SHOWN:
            print(f"  and {len(differences) - k} more")
            break
        print(f"  {name}")
        for line in lines:
            print(f"    {line}")
