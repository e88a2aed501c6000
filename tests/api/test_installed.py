"""What texts tell to install, by how gpusplu came here; what pyproject.toml says of the package."""

import re
import sys
import tomllib
from importlib import import_module, metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

import gpusplu
from gpusplu.common import installed
from gpusplu.common.installed import install_hint

PACKAGE = Path(gpusplu.__file__).parent
RECIPE = Path(__file__).parents[2] / "packaging" / "conda" / "recipe.yaml"
REQUIRES = [
    "numpy>=1.26",
    'cupy-cuda12x[ctk]>=14; extra == "cuda12"',
    "cupy-cuda13x[ctk]>=14 ; extra == 'cuda13'",
    'matplotlib>=3.9; extra == "plot"',
    'petsc>=3; (python_version >= "3.12" and platform_system == "Linux") and extra == "distributed"',
    'other; extra == "distributed"',
]


@pytest.fixture
def came_by(monkeypatch):
    """A distribution with this direct_url.json, whose package lies in this folder."""

    def pretend(direct_url, folder=PACKAGE):
        found = SimpleNamespace(read_text=lambda name: direct_url, locate_file=lambda name: folder)
        monkeypatch.setattr(metadata, "distribution", lambda name: found)
        monkeypatch.setattr(metadata, "requires", lambda name: REQUIRES)

    return pretend


def test_from_an_index_extras_are_named(came_by):
    came_by(None)
    assert install_hint("plot") == "pip install 'gpusplu[plot]'"
    assert install_hint("cuda13", "cuda12") == "pip install 'gpusplu[cuda13]' or 'gpusplu[cuda12]'"


def test_from_elsewhere_packages_are_named(came_by):
    came_by('{"url": "file:///a/checkout", "dir_info": {}}')
    assert install_hint("plot") == "pip install 'matplotlib>=3.9'"
    assert install_hint("cuda13", "cuda12") == "pip install 'cupy-cuda13x[ctk]>=14' or 'cupy-cuda12x[ctk]>=14'"
    assert install_hint("distributed") == "pip install 'petsc>=3' 'other'"


def test_a_checkout_beside_an_installed_one_is_no_index(came_by, tmp_path):
    came_by(None, folder=tmp_path)
    assert install_hint("plot") == "pip install 'matplotlib>=3.9'"


def test_a_checkout_that_was_never_installed(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    monkeypatch.setattr(metadata, "requires", absent)
    monkeypatch.setattr(installed, "__file__", str(Path(__file__).parents[2] / "gpusplu" / "common" / "installed.py"))
    assert install_hint("plot") == f"pip install '{project()['optional-dependencies']['plot'][0]}'"
    monkeypatch.setattr(installed, "__file__", "/nowhere/gpusplu/common/installed.py")
    assert install_hint("plot") == "pip install 'gpusplu[plot]'"


def project():
    path = Path(__file__).parents[2] / "pyproject.toml"
    if not path.exists():
        pytest.skip("no checkout")
    return tomllib.loads(path.read_text())["project"]


@pytest.mark.parametrize("extra", ["cuda12", "cuda13", "plot", "jax", "torch", "distributed"])
def test_extras_that_texts_name_exist(extra):
    assert project()["optional-dependencies"][extra]


def test_one_version():
    said = project()["version"]
    assert gpusplu.__version__ == said
    citation = (Path(__file__).parents[2] / "CITATION.cff").read_text()
    assert f"\nversion: {said}\n" in citation
    assert f'\n  version: "{said}"\n' in RECIPE.read_text()
    changelog = (RECIPE.parents[2] / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## \[(.*?)\](?: - (\d{4}-\d\d-\d\d))?$", changelog, re.M)
    assert headings[0] == ("Unreleased", "")
    assert headings[1][0] == said
    assert all(date and f"\n[{version}]: " in changelog for version, date in headings[1:])


def of_recipe(heading):
    """Items of one list of the recipe for conda: it has no other of that name."""
    (items,) = re.findall(rf"^( *){heading}:\n((?:\1 +.*\n)+)", RECIPE.read_text(), re.M)
    return {line.strip(" -").replace(" ", "") for line in items[1].splitlines()}


def test_the_recipe_for_conda_requires_what_the_package_does():
    said = project()
    system = tomllib.loads((RECIPE.parents[2] / "pyproject.toml").read_text())["build-system"]
    assert of_recipe("run") == {"python", *said["dependencies"]}
    assert of_recipe("host") == {"python", "pip", *system["requires"]}
    extras = said["optional-dependencies"]
    cupy = {re.sub(r"-cuda1\dx\[ctk\]", "", name) for extra in ("cuda12", "cuda13") for name in extras[extra]}
    assert of_recipe("run_constraints") == {*cupy, extras["plot"][0].replace("matplotlib", "matplotlib-base")}
    assert f'match(python,"<{said["requires-python"].removeprefix(">=")}")' in of_recipe("skip")
    cmake = re.search(r"cmake_minimum_required\(VERSION (\S+)\)", (RECIPE.parents[2] / "CMakeLists.txt").read_text())[1]
    assert f"cmake>={cmake}" in RECIPE.read_text().replace(" ", "")


def test_the_console_script(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["gpusplu", "--version"])
    module, _, name = project()["scripts"]["gpusplu"].partition(":")
    with pytest.raises(SystemExit) as end:
        getattr(import_module(module), name)()
    assert end.value.code == 0
    assert capsys.readouterr().out == f"gpusplu {gpusplu.__version__}\n"


CHECKOUT = Path(__file__).resolve().parents[2]
HOOKS = {"ruff-pre-commit": "ruff", "mirrors-clang-format": "clang-format", "mirrors-mypy": "mypy"}


def test_one_version_of_each_tool():
    hooks = re.findall(r"/([\w-]+)\n    rev: v([\d.]+)", (CHECKOUT / ".pre-commit-config.yaml").read_text())
    lint = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["dependency-groups"]["lint"]
    pinned = dict(line.split("==") for line in lint if "==" in line)
    assert pinned == {HOOKS[name]: version for name, version in hooks if name in HOOKS}
