"""The checks of the sources are the same in .pre-commit-config.yaml and, as the extra `dev`, in .ci/run."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOOKS = {"ruff-pre-commit": "ruff", "mirrors-clang-format": "clang-format", "mirrors-mypy": "mypy"}


def test_one_version_of_each_tool():
    hooks = re.findall(r"/([\w-]+)\n    rev: v([\d.]+)", (ROOT / ".pre-commit-config.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = dict(line.split("==") for line in project["optional-dependencies"]["dev"] if "==" in line)
    assert pinned == {HOOKS[name]: version for name, version in hooks if name in HOOKS}
