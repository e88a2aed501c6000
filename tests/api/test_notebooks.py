"""What notebooks show of factors, stats and explanations: tables that are HTML, escaped, in no colours of their own."""

import pickle
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import gpusplu as gs
import gpusplu.linalg
from gpusplu.common import notebook
from gpusplu.common.stats import Explanation, Stats


class Cells(HTMLParser):
    """Texts of the cells of tables, and whether every element is closed in its turn."""

    def __init__(self, html):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag != "br":
            self.open.append(tag)
        if tag in ("td", "th", "caption"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells[-1] += data


@pytest.fixture(scope="module")
def lu():
    lu = gs.splu(gs.gallery.poisson(12, 12))
    lu.solve(np.ones(144))
    return lu


def test_factors(lu):
    cells = Cells(lu._repr_html_()).cells
    shown = dict(zip(cells[1::2], cells[2::2], strict=True))
    assert cells[0] == "LUFactor" and shown["matrix"] == f"144 x 144, {lu.stats.nnz} entries, float64"
    assert shown["engine"].startswith("cpu, by ")
    for html in (lu._repr_html_(), lu.explain()._repr_html_(), notebook.grid("t", ["a"], [["b"]])):
        assert not re.search(r"#[0-9a-fA-F]{3}|rgb|background|(?<!-)color: (?!inherit)", html)  # those of the notebook


def test_stats(lu):
    cells = Cells(lu.stats._repr_html_()).cells
    *_, last = repr(lu.stats).splitlines()
    assert last.split(None, 1)[1] in cells and last.startswith("seconds ")  # with units in text, too
    assert cells[::2] == list(lu.stats)
    assert cells[1] == "cpu"
    assert Cells(Stats({"a<b>": "<script>&"})._repr_html_()).cells == ["a<b>", "<script>&"]


def test_explanations_are_text_and_tables(lu):
    for explanation in (lu.explain(), gs.explain(gs.gallery.poisson(12, 12))):
        assert isinstance(explanation, str)
        cells = Cells(explanation._repr_html_()).cells
        assert cells[0] == "matrix"
        words = re.sub(r"\s+", "", explanation)
        assert "".join(re.sub(r"\s+", "", cell) for cell in cells) == words
        copy = pickle.loads(pickle.dumps(explanation))
        assert (copy, copy._repr_html_()) == (explanation, explanation._repr_html_())


def test_tables_of_predictions_have_notes():
    table = [["engine", "factor", "solve"], ["cpu", "1 s", "-"], ["x", "no"]]
    explanation = Explanation([("rank", "3")], "predicted", table)
    lines = ["rank      3", "predicted", f"  engine     {'factor':>15}{'solve':>15}"]
    assert explanation.splitlines() == [*lines, f"  cpu        {'1 s':>15}{'-':>15}", "  x           no"]
    html = explanation._repr_html_()
    assert 'colspan="2"' in html
    assert Cells(html).cells == ["rank", "3", "predicted", "engine", "factor", "solve", "cpu", "1 s", "-", "x", "no"]


@pytest.mark.parametrize("module", [gs, gs.linalg])
def test_what_is_public_is_listed(module):
    assert set(dir(module)) - {"__version__"} == set(module.__all__)
    names = {}
    exec("from gpusplu.linalg import *", names)
    assert names["splu"] is gs.splu and {"gmres", "ldlt", "LinearOperator"} <= set(names)
