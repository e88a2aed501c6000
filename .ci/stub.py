"""Write gpusplu/_core.pyi, the signatures of the core that lies in this checkout; needs nanobind and ruff.

    python .ci/stub.py [--check]

With --check nothing is written: the exit status says whether the stub that is there is of this core.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STUB = ROOT / "gpusplu" / "_core.pyi"
# float32 and float64 are related types in NumPy's own stubs, so that overloads for both seem to overlap.
HEADER = """# Made by .ci/stub.py from core/bind.
# mypy: disable-error-code="overload-overlap"
from typing import Any

"""


def run(*command):
    subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=True)


def made_anew(path):
    """The stub as nanobind writes it, without what type checkers do not look at: where and how arrays lie."""
    run("nanobind.stubgen", "-q", "-D", "-m", "gpusplu._core", "-o", str(path))
    layout = r"Annotated\[(NDArray(?:\[[\w.]+\])?), dict\([^()]*(?:\([^()]*\)[^()]*)?\)\]"
    text = re.sub(layout, r"\1", path.read_text())
    text = re.sub(r"\bNDArray(?=[,)\]])", "NDArray[Any]", text)
    text = re.sub(r"(\*\*\w+)(?=[,)])", r"\1: Any", text)
    text = re.sub(r"^(ORDERINGS): tuple\b", r"\1: tuple[str, ...]", text, flags=re.MULTILINE)
    path.write_text(HEADER + text)
    run("ruff", "check", "-q", "--fix", "--select", "F,I", "--config", "pyproject.toml", str(path))
    run("ruff", "format", "-q", "--config", "pyproject.toml", str(path))
    return path.read_text()


def main():
    with tempfile.TemporaryDirectory() as folder:
        text = made_anew(Path(folder) / STUB.name)
    if "--check" not in sys.argv[1:]:
        STUB.write_text(text)
    elif STUB.read_text() != text:
        sys.exit("gpusplu/_core.pyi is not of this core: run python .ci/stub.py and commit what it writes")


if __name__ == "__main__":
    main()
