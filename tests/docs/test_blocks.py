"""Blocks of Python in the pages for users run, in the order of the page, and print what the page says they print.

A block of ``text`` right after one of ``python`` is what that prints; what has none prints nothing. Blocks of a page
share their names. A page that imports a package which this environment lacks is skipped from there on. CuPy is the
stand-in of the tests: what pages about it say holds, on the processor.
"""

import contextlib
import io
import re
from pathlib import Path

import pytest

import gpusplu as gs

ROOT = Path(__file__).parents[2]
USE = ROOT / "docs" / "use"
#: Other pages explain functions one by one, with names that stand for the reader's.
PROGRAMS = [
    ROOT / "README.md",
    *(USE / f"{name}.md" for name in ("start", "from_scipy", "from_scikit_sparse")),
    *sorted(set((USE / "recipes").iterdir()) - {USE / "recipes" / "index.md"}),
]
WITH_CUPY = [USE / "from_cupyx.md", USE / "from_cudss.md"]
#: A fenced block of Python, and the one of text that says what it prints.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n*```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def run(page):
    """Run the blocks of a page one after the other; skip where a package is missing."""
    text, names = page.read_text(), {"__name__": "__main__"}
    found = list(BLOCK.finditer(text))
    assert found
    for block in found:
        line, printed = text.count("\n", 0, block.start(1)), io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * line + block.group(1), page, "exec"), names)
        except ModuleNotFoundError as error:
            if error.name.startswith("gpusplu"):
                raise
            pytest.skip(f"{page.stem}, from line {line + 1}: {error.name} is not installed")
        assert printed.getvalue() == (block.group(2) or ""), f"{page}:{line + 1}"


@pytest.fixture(autouse=True)
def uninstalled():
    yield
    gs.uninstall()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # other packages' own
@pytest.mark.filterwarnings("ignore:Sparse (CSR tensor support|invariant checks)")
@pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: page.stem)
def test_blocks_print_what_the_page_says(page):
    run(page)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("page", WITH_CUPY, ids=lambda page: page.stem)
def test_blocks_with_cupy(page):
    run(page)


def test_a_block_that_prints_something_else_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match=r"page.md:6"):
        run(page)
