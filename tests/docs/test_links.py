"""Files that the root's pages and the code point to are there; links between pages of docs/ are Sphinx's to check."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Of a link of Markdown or HTML: the file, without a heading in it.
LINK = re.compile(r"\]\(([^)#\s]+)|(?:src|srcset)=\"([^\"]+)\"")
#: A page that a comment or a docstring names; an ending may be left out.
NAMED = re.compile(r"\bdocs/[\w/-]+(?:\.md)?")
CODE = {".py", ".cpp", ".hpp", ".cu", ".cuh"}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_of_the_root(page):
    targets = {link or image for link, image in LINK.findall((ROOT / page).read_text())}
    assert targets
    assert [name for name in targets if "://" not in name and not (ROOT / name).exists()] == []


def test_pages_that_code_names():
    files = [path for folder in ("gpusplu", "asv_bench", "tests", "examples") for path in (ROOT / folder).rglob("*")]
    named = {name for path in files if path.suffix in CODE for name in NAMED.findall(path.read_text())}
    assert len(named) > 5
    assert [name for name in named if not list(ROOT.glob(f"{name}*"))] == []
