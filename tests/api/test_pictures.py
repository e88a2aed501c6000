"""Pictures: what is drawn are the numbers of test_plotting.py; and the command that saves them."""

import builtins
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.io

import gpusplu as gs
from gpusplu import gallery, plotting
from gpusplu.cli import main
from gpusplu.common.installed import install_hint
from gpusplu.plotting.axes import counted, plain_ticks

KINDS = ("density", "requests", "strides", "levels", "supernodes", "spy", "timeline", "roofline")


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


def test_no_curve_hides_another(structure, agg):
    """Where curves coincide the one drawn later is thinner, so that both are seen."""
    for ax in (plotting.draw_density(structure), plotting.draw_levels(structure)):
        widths = [line.get_linewidth() for line in [*ax.get_lines(), *ax.patches]]
        assert all(wide > 1.5 * thin for wide, thin in zip(widths[::2], widths[1::2], strict=True))
        assert ax.get_title()


def test_titles_do_not_overlap(structure, agg):
    for figure in (plotting.draw_strides(structure), plotting.draw_requests(structure)):
        figure.canvas.draw()
        boxes = [ax.title.get_window_extent() for ax in figure.axes if ax.get_title()]
        assert len(boxes) >= 2
        assert not any(one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[:k])


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


def test_numbers_on_axes(agg):
    assert [counted(x) for x in (0.5, 12, 999.7, 1234, 2.5e6, 3e9, 1e15)] == [
        *("0.5", "12", "1 k", "1.23 k", "2.5 M", "3 G", "1 P")
    ]
    ax = plotting.axes.new_axes()
    ax.set(yscale="log", ylim=(1e3, 9e3))
    plain_ticks(ax.yaxis)
    assert [label.get_text() for label in ax.get_yticklabels() if label.get_text()][:3] != []


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
    assert not {"spy", "timeline"} - set(dir(lu.plot))


def test_factors_do_not_import_matplotlib():
    code = "import sys, gpusplu as gs; gs.splu(gs.gallery.poisson(9, 9)).plot; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


@pytest.mark.parametrize("kind", KINDS)
def test_command(kind, tmp_path, capsys, agg):
    scipy.io.mmwrite(tmp_path / "A.mtx", gallery.rlc_mesh(6, 5))
    target = tmp_path / "picture.png"
    assert main(["plot", kind, str(tmp_path / "A.mtx"), "-o", str(target), "--ordering", "amd"]) == 0
    assert str(target) in capsys.readouterr().out
    assert target.read_bytes().startswith(b"\x89PNG") and target.stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["density", "A.mtx", "-o", "a.txt"], "the extension is not one of"),
        (["density", "A.mtx", "-o", "none/a.png"], "no such folder"),
        (["requests", "A.mtx", "-o", "a.png", "--division", "999"], "division is 999"),
        (["spy", "A.mtx", "-o", "a.png", "--first", "999"], "first is 999"),
        (["levels", "A.mtx", "-o", "a.png", "--ordering", "best"], "ordering"),
    ],
)
def test_command_says_what_is_wrong(arguments, message, tmp_path, capsys, monkeypatch, agg):
    monkeypatch.chdir(tmp_path)
    scipy.io.mmwrite("A.mtx", gallery.rlc_mesh(6, 5))
    assert main(["plot", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("a.*"))


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
