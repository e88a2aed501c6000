"""Blocks of Python in the pages for users run, in the order of the page, and print what the page says they print.

A block of ``text`` right after one of ``python`` is what that prints; what has none prints nothing. Blocks of a page
share their names. A page that imports a package which this environment lacks is skipped from there on. CuPy is the
stand-in of the tests: what pages about it say holds, on the processor.
"""

import ast
import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

import gpusplu as gs

ROOT = Path(__file__).parents[2]
USE = ROOT / "docs" / "use"
PROGRAMS = [
    ROOT / "README.md",
    *(USE / f"{name}.md" for name in ("start", "from_scipy", "from_scikit_sparse")),
    *sorted(set((USE / "recipes").iterdir()) - {USE / "recipes" / "index.md"}),
]
WITH_CUPY = [USE / "from_cupyx.md", USE / "from_cudss.md"]
#: Pages that explain functions one by one, with names that stand for the reader's.
EXPLAINING = [
    USE / f"{name}.md"
    for name in ("patterns", "definite", "updates", "schur", "inverse", "ldlt", "batches", "precision", "options")
]
#: Of these, what prints more than a page would show.
SHOWING = [USE / "options.md"]
#: What a reader of them would have.
READER = """
import numpy as np
import scipy.sparse as sp
import gpusplu as gs
from gpusplu import gallery
A, K, rng = gallery.rlc_mesh(6, 6), gallery.poisson(8, 8), np.random.default_rng(0)
b, f, x, steps, new_values = np.ones(A.shape[0]), np.ones(K.shape[0]), np.ones(A.shape[0]), range(2), 2 * A.data
U = V = 1e-3 * np.eye(A.shape[0], 2)
X, y = sp.random_array((200, 30), density=0.1, rng=rng, format="csr"), np.ones(200)
X_new, values = X[:3], A.data * np.linspace(1, 2, 4)[:, None]
jacobian, residual, lu = lambda x: A, lambda x: x, gs.splu(A)
"""
#: A fenced block of Python, and the one of text that says what it prints.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n*```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def run(page, names=()):
    """Run the blocks of a page one after the other, with `names` there; skip where a package is missing."""
    text, names = page.read_text(), {"__name__": "__main__", **dict(names)}
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
        expected = printed.getvalue() if page in SHOWING else block.group(2) or ""
        assert printed.getvalue() == expected, f"{page}:{line + 1}"
    return names


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


@pytest.mark.parametrize("page", EXPLAINING, ids=lambda page: page.stem)
def test_blocks_with_names_of_the_reader(page):
    names = {}
    exec(READER, names)
    if page.stem in ("definite", "ldlt"):
        names |= {"A": names["K"], "b": names["f"], "new_values": 2 * names["K"].data}
    found = run(page, names)
    if page.stem == "schur":
        np.testing.assert_allclose(found["u"][found["interface"]], found["v"][found["interface"]])
    if page.stem == "inverse":
        np.testing.assert_allclose(found["ch"].inverse_diagonal()[:3], [0.290, 0.325, 0.332], atol=5e-4)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_blocks_are_python(page):
    """Also those that need a device, or many ranks."""
    for block in BLOCK.finditer(page.read_text()):
        for node in ast.walk(ast.parse(block.group(1))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "gs":
                assert hasattr(gs, node.attr), f"{page}: gs.{node.attr}"


def test_a_block_that_prints_something_else_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match=r"page.md:6"):
        run(page)
