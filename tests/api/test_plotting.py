"""The numbers behind pictures against counts by definition, pictures of them, and the command that saves those."""

import builtins
import re

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery, plotting
from gpusplu.cli import main
from gpusplu.common.installed import install_hint
from gpusplu.plotting.elimination import TILE
from gpusplu.plotting.timeline import merged


def test_elimination_and_densities(structure):
    """Those of the remaining submatrix before every step, and of the trailing blocks of the factors."""
    M, n, remaining = structure.B.toarray(), structure.n, []
    for k in range(n):
        remaining.append(M[k:, k:].mean())
        M[k + 1 :, k + 1 :] |= np.outer(M[k + 1 :, k], M[k, k + 1 :])
    F = (structure.L + structure.U + sp.eye_array(n, dtype=bool)).toarray()
    np.testing.assert_array_equal(M, F)
    np.testing.assert_allclose(plotting.remaining_density(structure), remaining, rtol=1e-14)
    np.testing.assert_allclose(plotting.factor_density(structure), [F[k:, k:].mean() for k in range(n)], rtol=1e-14)
    edges, counts = plotting.entries_by_cell(structure, first=10, cells=7)
    rows = np.add.reduceat(np.add.reduceat(F[10:, 10:].astype(int), edges[:-1] - 10, 0), edges[:-1] - 10, 1)
    np.testing.assert_array_equal(counts, rows)


def test_what_cannot_be_drawn(structure):
    for bad in ({"division": 61}, {"division": -1}, {"first": 60}):
        with pytest.raises(ValueError, match="60 columns"):
            plotting.memory_maps(structure, **bad)
    for structure_of in (plotting.fronts, plotting.column_structure):
        with pytest.raises(RuntimeError, match="exactly singular"):
            structure_of(sp.csc_array(np.diag([1.0, 0, 1])))
    assert plotting.fronts(sp.csc_array(np.diag([1.0, 1, 1], 1) + np.diag([2.0, 1, 1, 1])), "natural").n == 4


def brute_maps(structure, p):
    """Requests and strides entry by entry."""
    n = structure.n
    L, U = structure.L.toarray(), structure.U.toarray()
    F = L | U | np.eye(n, dtype=bool)
    requests, strides, hops = (np.zeros((n, n), int) for _ in range(3))
    for k in range(n):
        stored = np.flatnonzero(F[:, k])
        for j in np.flatnonzero(U[:, k]):
            if j >= p:
                continue
            requests[j, k] += 1
            last = None
            for i in np.flatnonzero(L[:, j]):
                requests[i, j] += 1
                if i >= p and k >= p:
                    continue
                requests[i, k] += 1
                place = np.searchsorted(stored, i)
                if last is not None:
                    strides[i, k] += place - last
                    hops[i, k] += 1
                last = place
    tiles = -(-(n - p) // TILE)
    for i in range(p, n):
        for k in range(p, n):
            requests[i, k] += 1 + tiles - min((i - p) // TILE, (k - p) // TILE)
            strides[i, k] += 1
            hops[i, k] += 1
    return requests, strides, hops


@pytest.mark.parametrize("division", [None, 0, 20, 45])
@pytest.mark.parametrize("first", [0, 25])
def test_memory_maps(structure, division, first):
    n = structure.n
    maps = plotting.memory_maps(structure, division, first, cells=n)
    expected = brute_maps(structure, n if division is None else division)
    for got, want in zip((maps.requests, maps.strides, maps.hops), expected, strict=True):
        np.testing.assert_array_equal(got, want[first:, first:])
    coarse = plotting.memory_maps(structure, division, first, cells=7)
    sums = np.add.reduceat(np.add.reduceat(maps.requests, coarse.edges[:-1] - first, 0), coarse.edges[:-1] - first, 1)
    np.testing.assert_array_equal(coarse.requests, sums)
    assert np.isnan(maps.mean_stride[maps.hops == 0]).all()


@pytest.mark.parametrize("cholesky", [False, True])
@pytest.mark.parametrize("ordering", ["auto", "nd"])
def test_fronts(cholesky, ordering):
    A = gallery.poisson(13, 12)
    fronts = plotting.fronts(A, ordering, cholesky)
    n = A.shape[0]
    F = np.zeros((n, n), bool)
    for begin, width, rows in zip(fronts.first, fronts.width, fronts.rows, strict=True):
        own = np.arange(begin, begin + width)
        F[np.ix_(own, own)] = F[np.ix_(rows, own)] = F[np.ix_(own, rows)] = True
    assert fronts.n == n
    edges, counts = plotting.entries_by_cell(fronts, cells=n)
    np.testing.assert_array_equal(counts, F)
    edges, counts = plotting.entries_by_cell(fronts, first=10, cells=9)
    assert edges[0] == 10 and edges[-1] == n
    assert counts[2, 5] == F[edges[2] : edges[3], edges[5] : edges[6]].sum()
    assert counts.sum() == F[10:, 10:].sum()
    assert fronts.level.max() > 2 and (fronts.level == 0).sum() > 4


@pytest.mark.parametrize("kind", ["cholesky", "ldlt", "splu"])
def test_timeline(kind):
    A = gallery.poisson(40, 40)
    factor = getattr(gs, kind)(A, ordering="nd")
    before, counted_before = factor.stats.n_refactor, factor.version
    times = plotting.timeline(factor)
    assert (factor.stats.n_refactor, factor.version) == (before, counted_before)
    assert times.seconds == factor.stats.seconds
    if factor.stats.method == "front":
        assert set(times.front) == set(range(times.front.max() + 1))
    else:
        assert times.front.size == 0
    assert (times.begin >= 0).all() and (times.begin <= times.end).all()
    for thread in np.unique(times.thread):
        own = np.sort(times.begin[times.thread == thread]), np.sort(times.end[times.thread == thread])
        assert (own[0][1:] >= own[1][:-1]).all()  # one front after the other


def test_short_spans_are_drawn_together():
    begin, end = np.array([3.0, 0, 0.01, 0.02, 1]), np.array([3.01, 0.01, 0.02, 0.03, 2])
    found = merged(begin, end, 0.05)
    np.testing.assert_array_equal(found, [[0, 1, 3], [0.03, 2, 3.01]])
    assert merged(begin[:0], end[:0], 1)[0].size == 0


def test_points_of_a_roofline():
    A = gallery.poisson(30, 30)
    for factor, passes in ((gs.splu(A, pivoting="partial"), 1), (gs.cholesky(A), 2)):
        assert [point.phase for point in plotting.points(factor)] == ["factor"]
        factor.solve(np.ones(900))
        solve = plotting.points(factor)[-1]
        assert (solve.flops, solve.bytes) == (2 * passes * factor.nnz, passes * factor.stats.bytes)
        assert solve.rate == pytest.approx(solve.flops / factor.stats.seconds["solve"])
    real, imaginary = (plotting.points(gs.cholesky(M))[0] for M in (A, A.astype(complex)))
    assert imaginary.flops == 4 * real.flops


KINDS = ("density", "supernodes", "spy", "levels", "timeline", "roofline", "strides", "requests")


@pytest.fixture
def agg(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    matplotlib.use("agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def test_drawn_lines_are_the_data(structure, agg):
    ax = plotting.draw_density(structure)
    lines = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    np.testing.assert_array_equal(lines["real"], plotting.remaining_density(structure))
    np.testing.assert_array_equal(lines["L + U"], plotting.factor_density(structure))
    assert ax.get_xlim() == (60, 1)


def test_drawn_maps_are_the_data(structure, agg):
    figure = plotting.draw_requests(structure, division=50)
    images = [ax.images[0].get_array() for ax in figure.axes if ax.images and ax.get_xlabel() == "column"]
    assert len(images) == 4  # the plane and its corner, unblocked and blocked
    expected = plotting.memory_maps(structure, 50).requests
    np.testing.assert_array_equal(images[1].filled(0), expected)
    corner = plotting.memory_maps(structure, 50, first=30).requests
    np.testing.assert_array_equal(images[3].filled(0), corner)


def test_drawn_supernodes_are_the_data(agg):
    fronts = plotting.fronts(gallery.poisson(13, 12), "nd")
    ax = plotting.draw_supernodes(fronts)
    twin = next(other for other in ax.figure.axes if other is not ax)
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), np.bincount(fronts.level))
    np.testing.assert_array_equal(twin.get_lines()[0].get_ydata(), np.bincount(fronts.level, fronts.flops))
    assert len(twin.yaxis.get_majorticklocs()) >= 3  # numbers to read, though it spans less than a power of ten
    spy = plotting.draw_spy(fronts, first=5)
    assert len(spy.collections[0].get_paths()) == ((fronts.width >= 2) & (fronts.first >= 5)).sum()


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_pictures_are_in_the_style_of_the_caller(structure, style, agg):
    from matplotlib import pyplot

    here = plotting.Machine("a machine", 1e10, 1e11)
    with pyplot.style.context(style):
        figures = [plotting.draw_strides(structure), plotting.draw_spy(structure).figure]
        figures.append(plotting.draw_roofline(here, []).figure)
        background = pyplot.rcParams["axes.facecolor"]
    for figure in figures:
        assert all(same_colour(ax.get_facecolor(), background) for ax in figure.axes)
    roof = figures[2].axes[0].get_lines()[0]
    assert not same_colour(roof.get_color(), background)


def same_colour(one, other):
    from matplotlib.colors import to_rgb

    return to_rgb(one) == to_rgb(other)


def test_drawn_timelines_are_the_data(agg):
    seconds = {"analyze": 0.5, "factor": 0.25, "refactor": 0.0}
    begin, end = np.array([0, 0, 2, 2.0]), np.array([2, 1, 3, 3.0])
    times = plotting.Timeline(seconds, *np.array([[0, 1, 0, 1], [0, 1, 2, 2]]), begin, end)
    phases, fronts = plotting.draw_timeline(times).axes
    assert [bar.get_width() for bar in phases.patches] == [500, 250]
    assert "3 fronts, 2 threads, 83% busy" in fronts.get_title()
    assert sum(len(spans.get_paths()) for spans in fronts.collections) == 4
    assert [text.get_text() for text in fronts.get_legend().get_texts()] == [
        "fronts of one thread",
        "fronts of all threads",
    ]
    alone = plotting.Timeline(seconds, np.array([0, 1]), np.array([0, 1]), np.array([0, 1.0]), np.array([1, 2.0]))
    assert len(plotting.draw_timeline(alone).axes[1].get_legend().get_texts()) == 1
    empty = plotting.Timeline(seconds, *np.zeros((2, 0), int), *np.zeros((2, 0)))
    assert len(plotting.draw_timeline(empty).axes) == 1


@pytest.mark.thorough
def test_machine_and_roof(agg):
    here = plotting.machine()
    assert 1e8 < here.bandwidth < 1e13 and 1e8 < here.rate < 1e15
    point = plotting.Point("solve", 2e6, 16e6, 1e-3)
    ax = plotting.draw_roofline(plotting.Machine("m", 4e10, 2e11), [point])
    roof, drawn = ax.get_lines()
    assert roof.get_ydata().max() == 2e11
    assert (drawn.get_xdata()[0], drawn.get_ydata()[0]) == (0.125, 2e9)
    assert "40% of the roof" in drawn.get_label()


def test_methods_draw_the_factor_itself(agg):
    A = gallery.rlc_mesh(6, 6)
    lu = gs.splu(A, pivoting="partial")
    F = (abs(lu.L) + abs(lu.U)).toarray() != 0
    image = lu.plot.spy().images[0].get_array()
    assert (image.filled(0) > 0).sum() == F.sum()
    real = next(line for line in lu.plot.density().get_lines() if line.get_label() == "real")
    assert real.get_ydata()[0] == pytest.approx((A.toarray() != 0).mean(), rel=0.2)
    assert lu.plot.levels().get_title() and lu.plot.strides() and lu.plot.requests()
    with pytest.raises(ValueError, match="without fronts"):
        lu.plot.supernodes()
    symbolic = gs.analyze(gallery.poisson(20, 20), cholesky=True)
    assert "supernodes" in symbolic.plot.supernodes().get_title()
    assert "outlined" in symbolic.factor(gallery.poisson(20, 20).data).plot.spy().get_title()
    assert not {"spy", "timeline"} - set(dir(lu.plot)) and "lnz" in dir(symbolic)


@pytest.mark.parametrize("kind", [*KINDS[:3], *(pytest.param(kind, marks=pytest.mark.thorough) for kind in KINDS[3:])])
def test_command(kind, tmp_path, capsys, agg):
    scipy.io.mmwrite(tmp_path / "A.mtx", gallery.rlc_mesh(6, 5))
    target = tmp_path / "picture.png"
    assert main(["plot", kind, str(tmp_path / "A.mtx"), "-o", str(target), "--ordering", "amd"]) == 0
    assert str(target) in capsys.readouterr().out
    assert target.read_bytes().startswith(b"\x89PNG") and target.stat().st_size > 5000


def test_command_says_what_is_wrong(tmp_path, capsys, monkeypatch, agg):
    monkeypatch.chdir(tmp_path)
    for message, *arguments in (
        ("the extension is not one of", "density", "poisson:6x5", "-o", "a.txt"),
        ("no such folder", "density", "poisson:6x5", "-o", "none/a.png"),
        ("cannot be written", "density", "poisson:6x5", "-o", f"{300 * 'a'}.png"),
        ("division is 999", "requests", "poisson:6x5", "-o", "a.png", "--division", "999"),
        ("first is 999", "spy", "poisson:6x5", "-o", "a.png", "--first", "999"),
        ("ordering", "levels", "poisson:6x5", "-o", "a.png", "--ordering", "best"),
    ):
        assert main(["plot", *arguments]) == 2
        assert message in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_without_matplotlib(structure, tmp_path, capsys, monkeypatch):
    original = builtins.__import__

    def without(name, *arguments, **keywords):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError("broken on purpose")
        return original(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=re.escape(install_hint("plot"))):
        plotting.draw_density(structure)
    assert main(["plot", "density", "A.mtx", "-o", str(tmp_path / "a.png")]) == 2
    assert install_hint("plot") in capsys.readouterr().err
