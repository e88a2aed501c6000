"""What type checkers know of gpusplu's functions; names and literals are those that are checked when it runs."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import gpusplu as gs
from gpusplu import _core, typing
from gpusplu.common.rhs import TRANS
from gpusplu.factors.analysis import HowToAnalyze
from gpusplu.factors.deferred import CHECKS

USES = Path(__file__).parents[1] / "support" / "typed_uses.py"
PACKAGE = Path(gs.__path__[0]).parent


def checked(path, cache):
    """What mypy says of a file of a user's."""
    environment = dict(os.environ, MYPY_CACHE_DIR=str(cache))
    if PACKAGE.name != "site-packages":
        environment["MYPYPATH"] = str(PACKAGE)
    options = ["--config-file=", "--strict", "--follow-imports=silent"]
    command = [sys.executable, "-m", "mypy", *options, str(path.resolve())]
    # Elsewhere: in the root of a checkout mypy would check the package that lies there.
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cache, check=False)


@pytest.mark.thorough
def test_users_of_mypy(tmp_path):
    pytest.importorskip("mypy")
    found = checked(USES, tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr


def test_users_of_pyright(tmp_path):
    pytest.importorskip("basedpyright")
    settings = {"include": [str(USES)], "extraPaths": [str(PACKAGE)], "typeCheckingMode": "standard"}
    settings["reportUnnecessaryTypeIgnoreComment"] = "error"
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "-p", str(tmp_path), "--pythonpath", sys.executable]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize(
    ("names", "checked"),
    [
        (typing.OrderingName, _core.ORDERINGS),
        (typing.Trans, [name for name in TRANS if name.isupper()]),
        (typing.Check, CHECKS),
    ],
)
def test_literals_are_what_is_taken(names, checked):
    assert set(literals(names)) == set(checked)


def literals(names):
    """Of a Literal or a union of them."""
    for one in get_args(names):
        yield from (one,) if isinstance(one, str) else literals(one)


def test_overloads_of_analyze_know_all_its_keywords():
    keywords = set(inspect.signature(gs.analyze).parameters) - {"A", "cholesky", "ldlt", "schur"}
    assert HowToAnalyze.__optional_keys__ == keywords
