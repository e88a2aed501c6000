"""Test the gpusplu that this Python has installed, without a compiler: run by .ci/wheels and cibuildwheel.

    python .ci/test_installed.py [ARGUMENT OF PYTEST ...]

Tests that need neither the module of tests (gpusplu._core_testing), nor the emulator, nor files of the checkout are
copied to a folder of their own and run there.
"""

import ast
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("analysis", "api", "cpu")
#: What a test that is left out has in it, or a module of tests/support that it imports.
MISSING = ("_core_testing", "asv_bench", "faults", "parents[2]", "parents[1]", "support.emulated", "support/emulator")


def needed_modules(path):
    """Files of tests/support that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module == "support":
            names += [f"support.{alias.name}" for alias in node.names]
        for name in names:
            module = ROOT / "tests" / (name.replace(".", "/") + ".py")
            if name.startswith("support") and module.exists():
                yield module


def runs_alone(path, seen=()):
    """Whether a test needs nothing that an installed package lacks."""
    if any(word in path.read_text() for word in MISSING):
        return False
    return all(runs_alone(module, (*seen, path)) for module in needed_modules(path) if module not in seen)


def main():
    tests = ROOT / "tests"
    chosen = [path for folder in FOLDERS for path in sorted((tests / folder).glob("test_*.py")) if runs_alone(path)]
    with tempfile.TemporaryDirectory() as temporary:
        there = Path(temporary)
        shutil.copy(ROOT / "pyproject.toml", there)
        shutil.copytree(tests / "support", there / "tests" / "support")
        shutil.copytree(ROOT / "asv_bench", there / "asv_bench", ignore=shutil.ignore_patterns("records"))
        for path in [*chosen, *tests.glob("conftest.py"), *(tests / folder / "conftest.py" for folder in FOLDERS)]:
            if path.exists():
                target = there / path.relative_to(ROOT)
                target.parent.mkdir(exist_ok=True)
                shutil.copy(path, target)
        where = "import gpusplu, pathlib; print(pathlib.Path(gpusplu.__file__).parent)"
        subprocess.run([sys.executable, "-c", where], cwd=there, check=True)
        return subprocess.run([sys.executable, "-m", "pytest", "-q", *sys.argv[1:]], cwd=there).returncode


if __name__ == "__main__":
    sys.exit(main())
