"""The reference has a page for everything public."""

import re
from importlib import import_module
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
#: Of the package's names: `linalg` is SciPy's names and these, the others are pages of their own.
MODULES = {"distributed", "gallery", "linalg", "plotting", "typing"}
LISTED = re.compile(r"^\.\. currentmodule:: (\S+)$|^   (\w+)$", re.MULTILINE)


def listed():
    """Names that tables of the reference list, by module."""
    found, module = {}, None
    for path in REFERENCE.glob("*.md"):
        for current, name in LISTED.findall(path.read_text()):
            module = current or module
            found.setdefault(module, []).extend([name] if name else [])
    return found


@pytest.mark.parametrize("module", ["", "errors", "gallery", "plotting", "torch", "jax", "distributed"])
def test_every_public_name_has_a_page(module):
    pages, whole = listed(), f"gpusplu.{module}".rstrip(".")
    if module in ("torch", "jax"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    public = set(import_module(whole).__all__)
    if not module:
        public -= {*pages["gpusplu.errors"], *MODULES}
    assert sorted(pages[whole]) == sorted(public)
