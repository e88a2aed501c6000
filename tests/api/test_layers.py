"""Imports go downwards only, without circles; an engine's name stands in its own folder and its tables only."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from gpusplu import _core, _core_testing
from gpusplu.engines import registry

ROOT = Path(__file__).parents[2] / "gpusplu"
#: Packages and modules directly in gpusplu, from the ground up; each imports only rows before its own.
ROWS = (
    ("_core",),
    ("typing",),
    ("errors",),
    ("common",),
    ("gallery", "cuda"),
    ("cost",),
    ("engines",),
    ("plotting",),
    ("dispatch",),
    ("factors",),
    ("linalg",),
    ("torch", "jax", "distributed"),
    ("install",),
    ("cli",),
    ("__main__",),
)
#: A name as an argument, and by itself or as the beginning of a key; a path of a kernel file.
SPELLED = r"""engine=["']{name}["']|(?<![\w.])["']{name}["'.]|["'/]{name}\.cu"""
#: Of a name that others have for a device: as an argument that says which, and as the first one of a call.
SPELLED_CPU = r"""engine=["']{name}["']|\w\(["']{name}["']"""


def modules(root):
    """Path of every module by its name inside the package; the package itself is ""."""
    found = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {**found, "_core": None}


def imported(name, path, known):
    """Modules of the package that a module imports, anywhere in it, for types too."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    package = [part for part in package if part]
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            base = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
        elif (node.module or "").split(".")[0] == "gpusplu":
            base = node.module.split(".")[1:]
        else:
            continue
        base = ".".join(part for part in base if part)
        for alias in node.names:
            whole = f"{base}.{alias.name}".lstrip(".")
            yield whole if whole in known else base


def imports_of(root):
    known = modules(root)
    return {name: {*imported(name, path, known)} - {name} if path else set() for name, path in known.items()}


def upwards(imports):
    """Imports that do not point downwards. The package itself imports what is public from everywhere."""
    row = {name: k for k, names in enumerate(ROWS) for name in names}
    for name, others in imports.items():
        for other in others:
            top, target = name.partition(".")[0], other.partition(".")[0]
            if top and target and top != target and not row.get(target, 99) < row.get(top, -1):
                yield f"{name} imports {other}"


def circles(imports):
    """Modules that import themselves by way of others: what is left when all without imports are taken away."""
    left = {name: set(others) for name, others in imports.items()}
    while free := [name for name, others in left.items() if not others & left.keys()]:
        for name in free:
            del left[name]
    return sorted(left)


def test_imports_go_downwards():
    imports = imports_of(ROOT)
    assert len(imports) > 90
    assert list(upwards(imports)) == []
    assert circles({name: others - {""} for name, others in imports.items() if name}) == []
    assert {name.partition(".")[0] for name in imports} - {""} == {name for names in ROWS for name in names}


@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_names_of_engines_stand_in_their_folders(name):
    allowed = (ROOT / "engines" / name, ROOT / "typing.py", ROOT / "cost" / "table.py")
    spelled = SPELLED_CPU if name == "cpu" else SPELLED
    found = []
    for path in ROOT.rglob("*.py"):
        if any(path.is_relative_to(place) for place in allowed):
            continue
        code = without_docstrings(path)
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in re.finditer(spelled.format(name=name), code)]
    assert found == []


def test_engines_are_imported_by_the_registry_only():
    """And by one that is composed of others."""
    found = {
        (name.rpartition(".")[0], other)
        for name, others in imports_of(ROOT).items()
        for engine in registry.BUILT_IN
        for other in others
        if f"{other}.".startswith(f"engines.{engine}.") and not f"{name}.".startswith(f"engines.{engine}.")
    }
    assert {package for package, _ in found} == {"engines.crisscross"}


@cache
def without_docstrings(path):
    """The code without comments and docstrings."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body[0].value.value = ""
    return ast.unparse(tree)


def test_the_core_uses_no_streams_of_its_library():
    """They have a state that the process shares; where another version of the library was loaded first, they crash."""
    sources = list((ROOT / "core").rglob("*.?pp"))
    assert len(sources) > 100
    streams = re.compile(r"#include <(\w*stream|iomanip|locale|regex)>")
    assert [path.name for path in sources if streams.search(path.read_text())] == []


def functions(module):
    return {name for name, value in vars(module).items() if type(value).__name__ == "nb_func"}


def test_the_package_calls_the_functions_of_its_core_and_no_others():
    called = set()
    for path in ROOT.rglob("*.py"):
        text = path.read_text()
        called |= set(re.findall(r"\b_core\w*\.(\w+)", text))
        called |= {name for line in re.findall(r"from \.+_core import (.+)", text) for name in re.findall(r"\w+", line)}
    assert functions(_core) - {"set_num_threads"} <= called  # that one is for users of threadpoolctl
    assert len(functions(_core)) > 20
    assert not functions(_core_testing) - functions(_core) & called
