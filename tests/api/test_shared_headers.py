"""What the planner, the kernels and Python share is said once, in gpusplu/kernels/shared."""

import ast
import re

import pytest

from gpusplu.cuda import layout, nvrtc

PACKAGE = nvrtc.FOLDER.parent
TYPE = re.compile(r"\b(?:struct|class|enum|enum class)\s+(\w+)\s*(?::[^;{()]*)?\{")
CONSTANT = re.compile(r"\bconstexpr\s+(?:unsigned\s+|long\s+)*\w+\s+(\w+)\s*(?:\[[^]]*\]\s*)?=")
FUNCTION = re.compile(r"\bconstexpr\s+(?:long\s+)?\w+\s+(\w+)\(")
SHARED = sorted(str(path.relative_to(nvrtc.FOLDER)) for path in nvrtc.FOLDER.glob("shared/*"))


def text_of(path):
    return layout.COMMENT.sub("", path.read_text())


def definitions(text):
    return [name for pattern in (TYPE, CONSTANT, FUNCTION) for name in pattern.findall(text)]


def test_shared_names_are_defined_once():
    shared = [name for file in SHARED for name in definitions(text_of(nvrtc.FOLDER / file))]
    assert {"Front", "Launch", "LargeTask", "GluMode", "PANEL", "GROUPS", "front_ld"} <= set(shared)
    assert len(shared) == len(set(shared))
    others = [
        path
        for folder in ("kernels", "core/plan", "core/simd", "core/bind")
        for path in (PACKAGE / folder).rglob("*.*")
        if path.parent.name != "shared"
    ]
    again = {(path.name, name) for path in others for name in set(definitions(text_of(path))) & set(shared)}
    assert not again


def test_includes_go_downwards():
    allowed = {"shared": {"shared"}, "common": {"shared", "common"}}
    allowed |= {folder: {*allowed["common"], folder} for folder in ("fronts", "columns", "lockstep")}
    for path in nvrtc.FOLDER.rglob("*.*"):
        included = {name.split("/")[0] for name in nvrtc.INCLUDE.findall(path.read_text())} - {"cuda_emulator.hpp"}
        assert included <= allowed[path.parent.name], path
        if path.parent.name == "shared":
            assert "#include <" not in path.read_text()  # NVRTC has no standard library
    for path in (PACKAGE / "core").rglob("*.?pp"):
        assert not any(".." in name for name in nvrtc.INCLUDE.findall(path.read_text())), path


@pytest.mark.parametrize("folder", ["engines"])
def test_python_defines_no_layout(folder):
    """Structs and what kernels are compiled with come from the headers."""
    names = {name for file in SHARED for name in definitions(text_of(nvrtc.FOLDER / file))}
    paths = list((PACKAGE / folder).rglob("*.py"))
    assert len(paths) > 3
    for path in paths:
        text = path.read_text()
        assert not re.search(r"np\.dtype\(\s*\[", text), path
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.Tuple | ast.BinOp):
                numbers = [n for n in ast.walk(node.value) if isinstance(n, ast.Constant) and isinstance(n.value, int)]
                targets = {n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
                assert not (numbers and targets & (names | {"THREADS", "RESIDENT", "SLOTS", "CONTROL"})), (
                    path,
                    targets,
                )


@pytest.mark.parametrize("file", SHARED)
def test_python_reads_every_header(file):
    text = text_of(nvrtc.FOLDER / file)
    for name in re.findall(r"\bstruct\s+(\w+)", text):
        assert layout.struct(file, name).itemsize > 0
    for name in re.findall(r"\bconstexpr int (\w+) *=", text):
        assert isinstance(layout.constant(file, name), int)


def test_constants(tmp_path, monkeypatch):
    (tmp_path / "numbers.hpp").write_text(
        "constexpr int A = 7;  // not B = 3\nconstexpr int B = 2 * A - 16 / (1 << 2);\nconstexpr int F = sizeof(A);\n"
    )
    monkeypatch.setattr(nvrtc, "FOLDER", tmp_path)
    assert layout.constant("numbers.hpp", "B") == 10
    with pytest.raises(KeyError, match="no constant G"):
        layout.constant("numbers.hpp", "G")
    with pytest.raises(ValueError, match="cannot read constant F"):
        layout.constant("numbers.hpp", "F")
