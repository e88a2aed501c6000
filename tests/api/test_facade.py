"""What users hold: LUFactor, CholeskyFactor, Symbolic; their texts, and tables in notebooks."""

import pickle
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
import gpusplu.linalg
from gpusplu.common import notebook
from gpusplu.common.stats import Explanation, Stats
from support.small_matrices import random_matrix, rhs, spd_matrix


def test_threads_of_the_core_do_not_change_bits():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    A, b = random_matrix(400, density=0.02), rhs(400)
    x, threads = gs.splu(A).solve(b), gs._core.num_threads()
    with threadpoolctl.threadpool_limits(1):
        assert gs._core.num_threads() == 1
        np.testing.assert_array_equal(gs.splu(A).solve(b), x)
    info = [i for i in threadpoolctl.threadpool_info() if i["internal_api"] == "gpusplu"]
    assert [i["num_threads"] for i in info] == [gs._core.num_threads()] == [threads]
    with threadpoolctl.threadpool_limits(3, user_api="gpusplu"):
        assert gs._core.num_threads() == 3


def test_linalg_has_everything_that_scipy_has():
    import scipy.sparse.linalg as spla

    for name in spla.__all__:
        assert hasattr(gs.linalg, name)
    assert gs.linalg.gmres is spla.gmres
    assert gs.linalg.spilu is spla.spilu
    assert gs.linalg.splu is gs.splu
    assert {"gmres", "splu", "cholesky"} <= set(dir(gs.linalg))
    with pytest.raises(AttributeError, match=r"module 'gpusplu.linalg' has no attribute 'nothing', nor has scipy"):
        gs.linalg.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        gs.nothing  # noqa: B018
    assert set(gs.__all__) <= set(dir(gs))
    for name in gs.__all__:
        assert getattr(gs, name) is not None


def test_import_is_light():
    code = (
        "import sys, time; import numpy; start = time.process_time(); import gpusplu; t = time.process_time() - start; "
        "assert not {'cupy', 'scipy.sparse'} & set(sys.modules), 'imports too much'; assert t < 0.3, t; "
        "import gpusplu.install; assert callable(gpusplu.install); import gpusplu.linalg as spla; spla.splu; spla.cg; "
        "spla.splu(gpusplu.gallery.poisson(9, 9)).plot; assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_threads_get_the_same_bits():
    for factor in (gs.splu(random_matrix(400, density=0.02), refine="always"), gs.cholesky(spd_matrix(400))):
        sides = [rhs(400, seed=k) for k in range(8)]
        factor.solve(sides[0])  # a fresh factor may still have to find out whether it needs refinement
        expected, barrier = [[factor.solve(b, trans) for b in sides] for trans in "NT"], threading.Barrier(8)

        def work(k, factor=factor, expected=expected, barrier=barrier, sides=sides):
            barrier.wait()
            for j in np.arange(k, k + 20) % 8:
                for trans, x in zip("NT", expected, strict=True):
                    np.testing.assert_array_equal(factor.solve(sides[j], trans), x[j])

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(work, range(8)))


@pytest.mark.parametrize("make", [gs.splu, gs.cholesky])
def test_what_is_read_while_another_thread_refactors_is_of_one_matrix(make):
    """Solves, L and U wait for a refactorization; none of them is a mixture of two."""
    A, b = gs.gallery.poisson(40, 40), np.ones(1600)
    factor, ended = make(A, engine="cpu"), threading.Event()
    parts = {"x": lambda: factor.solve(b), "L": lambda: factor.L.data, "determinant": lambda: factor.slogdet()[1]}
    parts |= {"U": lambda: factor.U.data} if make is gs.splu else {}
    expected, found = ({name: set() for name in parts} for _ in range(2))
    for scale in (1, 4):
        factor.refactor(scale * A.data)
        for name, read in parts.items():
            expected[name].add(np.asarray(read()).tobytes())

    def change():
        while not ended.is_set():
            for scale in (1, 4):
                factor.refactor(scale * A.data)

    with ThreadPoolExecutor(1) as threads:
        changing = threads.submit(change)
        try:
            deadline, rounds = time.monotonic() + 60, 0
            while rounds < 200 or (len(found["x"]) < 2 and time.monotonic() < deadline):
                rounds += 1
                for name, read in parts.items():
                    found[name].add(np.asarray(read()).tobytes())
        finally:
            ended.set()
        changing.result()
    assert all(found[name] <= expected[name] for name in parts) and len(found["x"]) == 2


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_analyses_and_factors_do_not_depend_on_the_form_of_matrix_and_values(dtype, index):
    """Sorted and unsorted CSC arrays take one call of the core, other forms several."""
    A = sp.csc_array(random_matrix(dtype=dtype))
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    b, known = rhs(60, dtype), gs.analyze(A.tocoo(), engine="cpu")
    for engine in ("auto", "cpu"):
        found = gs.analyze(A, engine=engine)
        assert set(found.seconds) == set(known.seconds)
        for name in ("row_perm", "col_perm", "row_scale", "col_scale", "method", "kind", "lnz", "ordering"):
            np.testing.assert_array_equal(getattr(found, name), getattr(known, name))
        values = 2 * A.data
        factor = known.factor(2 * A.tocoo().data)
        swapped = values.astype(values.dtype.newbyteorder())
        for given in (values, np.repeat(values, 2)[::2], swapped, *([values.tolist()] if dtype in "dD" else [])):
            one = found.factor(given)
            np.testing.assert_array_equal(one.solve(b), factor.solve(b))
            assert one.dtype == dtype and (one.L != factor.L).nnz == (one.U != factor.U).nnz == 0
    unsorted = sp.csc_array((A.data[::-1], A.indices[::-1], A.nnz - A.indptr[::-1]), shape=A.shape)
    known = gs.analyze(sp.csc_array(A[:, ::-1]))
    np.testing.assert_array_equal(gs.analyze(unsorted).col_perm, known.col_perm)
    place = A.indptr[7]
    for make in (gs.analyze, gs.analyze(A, engine="cpu").factor):
        bad = A.copy()
        bad.data[place] = np.inf
        with pytest.raises(gs.NonFiniteError, match=rf"A\[{A.indices[place]}, 7\] is \(?inf"):
            make(bad)
        with pytest.raises(gs.NonFiniteError, match=rf"A\[{A.indices[place]}, 7\] is \(?inf"):
            make(bad if make is gs.analyze else bad.data)


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
    assert cells[::2] == list(lu.stats) and "flops" in repr(lu.stats) and "flops" in dir(lu.stats)
    assert dict(pickle.loads(pickle.dumps(lu.stats))) == dict(lu.stats)
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
