"""Imports go downwards only, without circles; an engine's name stands in its own folder and its tables only."""

import ast
import re
from pathlib import Path

import pytest

from gpusplu.engines import registry

ROOT = Path(__file__).parents[2] / "gpusplu"
#: Rooms of the house from the ground up; those of a row do not know each other.
LAYERS = (
    ("_core", "installed", "notebook", "once", "typing"),
    ("errors",),
    ("_scipy", "_cupyx", "stats", "counting", "arrays", "results"),
    ("journal",),
    ("matrix", "options", "timing", "threads", "gallery", "cuda"),
    ("rhs", "traits", "patterns"),
    ("recognised",),
    ("distributed",),
    ("cost",),
    ("problem",),
    ("engines.interface", "engines.pieces", "engines.processor"),
    ("engines.registry",),
    ("engines.cpu",),
    ("engines.device",),
    ("engines.columns", "engines.supernodal"),
    ("engines.glu", "engines.sflu"),
    ("engines.crisscross",),
    ("mixed",),
    ("selection",),
    ("ahead",),
    ("plotting", "report"),
    ("symbolic",),
    ("journal.phases",),
    ("block_pivots", "inverse", "later", "moving", "updated"),
    ("triangles",),
    ("factor_calls",),
    ("changes",),
    ("factor",),
    ("batch_watch",),
    ("batch_later", "schur_blocks", "schur_ways"),
    ("batch_calls",),
    ("batch", "ldl_factor", "schur"),
    ("pipeline",),
    ("indefinite",),
    ("analysis", "solving"),
    ("linalg",),
    ("batches", "gradients"),
    ("jax", "torch"),
    ("compat", "compat_cupyx", "measure"),
    ("install",),
    ("",),
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
    """Modules of the package that a module imports, anywhere in it but for types."""
    tree = ast.parse(path.read_text())
    types = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    left_out = {id(child) for node in types for child in ast.walk(node)}
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    package = [part for part in package if part]
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or id(node) in left_out:
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


def layer(name):
    """Row and room of a module."""
    rooms = [(len(room), row, room) for row, rooms in enumerate(LAYERS) for room in rooms]
    fitting = [one for one in rooms if name == one[2] or (one[2] and name.startswith(one[2] + "."))]
    return max(fitting)[1:] if fitting else None


def upwards(imports):
    """Imports that do not go downwards."""
    for name, others in imports.items():
        for other in others:
            if name in ("engines",) or other in ("engines",):
                continue  # a docstring
            here, there = layer(name), layer(other)
            if here is None or there is None or (here[0] <= there[0] and here != there):
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
    assert circles(imports) == []


@pytest.mark.parametrize(
    ("room", "line"),
    [("matrix.py", "from .linalg import splu"), ("engines/glu/plan.py", "def f():\n    from ..sflu import program")],
)
def test_an_import_upwards_is_seen(tmp_path, room, line):
    for path in ROOT.rglob("*.py"):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text())
    (tmp_path / room).write_text(line + "\n")
    assert len(list(upwards(imports_of(tmp_path)))) == 1


def test_a_circle_is_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_names_of_engines_stand_in_their_folders(name):
    allowed = (ROOT / "engines" / name, ROOT / "typing.py", ROOT / "cost" / "table.py")
    spelled = SPELLED_CPU if name == "cpu" else SPELLED
    found = []
    for path in ROOT.rglob("*.py"):
        if any(path.is_relative_to(place) for place in allowed):
            continue
        code = without_docstrings(path.read_text())
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


def without_docstrings(text):
    """The code without comments and docstrings."""
    tree = ast.parse(text)
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
