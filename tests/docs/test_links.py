"""What the root's pages, those of docs/internals and the code point to is there; links between pages of docs/ are
Sphinx's to check."""

import re
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path

import pytest

from gpusplu.engines import registry

ROOT = Path(__file__).parents[2]
#: Of a link of Markdown or HTML: the file, without a heading in it.
LINK = re.compile(r"\]\(([^)#\s]+)|(?:src|srcset)=\"([^\"]+)\"")
#: A page that a comment or a docstring names; an ending may be left out.
NAMED = re.compile(r"\bdocs/[\w/-]+(?:\.md)?")
CODE = {".py", ".cpp", ".hpp", ".cu", ".cuh"}
FOLDERS = ("gpusplu", "asv_bench", "tests", "examples", "packaging", ".ci", "cmake")
#: A file of code, in a page, where it may have a star, and in a comment of code, where it has a folder.
FILE = re.compile(r"[\w/*-]+\.(?:py|cpp|hpp|cuh|cu)\b")
FILE_OF_CODE = re.compile(r"(?<![\w./<-])[\w-]+(?:/[\w*-]+)+\.(?:py|cpp|hpp|cuh|cu)\b")
#: Code in a page: a name, by itself or behind the file that has it.
NAME = re.compile(r"(?:([\w/]+\.\w+): )?([A-Za-z_][\w.:]*)(?:\(\))?")
#: Names that are not ours.
OTHERS = {"libmpi.so.12"}


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


def sources():
    """Text of every file of code, by its path."""
    paths = chain(ROOT.glob("*.*"), *((ROOT / folder).rglob("*") for folder in FOLDERS))
    kinds = {*CODE, ".pyi", ".toml", ".txt", ".cmake"}
    found = {str(path.relative_to(ROOT)): path for path in paths if path.suffix in kinds and path != Path(__file__)}
    return {name: path.read_text() for name, path in found.items()}


def at(path, files):
    """The files that a path names, which may leave out folders it begins with."""
    if "*" in path:
        return [name for name in files if fnmatch(f"/{name}", f"*/{path}")]
    return [name for name in files if f"/{name}".endswith(f"/{path}")]


def missing(page, files, words):
    """Files and names in the code of a page that are not there."""
    page = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    for code in re.findall(r"`([^`]+)`", page):
        code = " ".join(code.split())
        yield from (file for file in FILE.findall(code) if not at(file, files))
        name = NAME.fullmatch(code)
        if name and code not in OTHERS and not at(code, files):
            yield from (f"{code}: {word}" for word in re.findall(r"\w+", name[2]) if word not in words)
            last = name[2].rpartition(".")[2]
            if name[1] and not any(re.search(rf"\b{last}\b", files[file]) for file in at(name[1], files)):
                yield code


def test_names_in_pages_of_internals():
    files = sources()
    words = {word for text in files.values() for word in re.findall(r"\w+", text)}
    internals = ROOT / "docs" / "internals"
    pages = [*internals.glob("*.md"), *(internals / "engines").glob("*.md")]
    assert len(pages) > 10
    assert [f"{page.name}: {what}" for page in pages for what in missing(page.read_text(), files, words)] == []
    for bad in ("nowhere.py", "engines/cpu/engine.py: no_such", "Factor.no_such", "no_such()", "core/*/nowhere.hpp"):
        assert list(missing(f"`{bad}`", files, words)), bad


@pytest.mark.parametrize(
    ("folder", "page"),
    [(".", "architecture.md"), ("kernels", "architecture.md"), ("core", "architecture.md")]
    + [(f"engines/{name}", f"engines/{name}.md") for name in registry.BUILT_IN],
)
def test_pages_of_internals_have_every_module(folder, page):
    text = (ROOT / "docs" / "internals" / page).read_text()
    rooms = [path for path in (ROOT / "gpusplu" / folder).iterdir() if path.suffix == ".py" or path.is_dir()]
    words = {re.compile(rf"\b{re.escape(path.name)}\b"): path.name for path in rooms if "__" not in path.name}
    named = {name.replace("*", ".*") for name in FILE.findall(text) if "*" in name}
    missing = [name for word, name in words.items() if not word.search(text)]
    assert [name for name in missing if not any(re.fullmatch(star, name) for star in named)] == []


#: Files that are another's, or made by a test.
ELSEWHERE = {"include/levels.hpp", "engines/glu/plan.py", "tests/cupyx_tests/scipy_tests/sparse_tests/test_linalg.py"}


def test_files_that_code_names():
    files = sources()
    named = {(name, file) for name, text in files.items() for file in FILE_OF_CODE.findall(text)}
    assert len(named) > 100
    assert [f"{name}: {file}" for name, file in named if not at(file, files) and file not in ELSEWHERE] == []
