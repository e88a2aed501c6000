"""The numbers behind the pictures against counts by definition, and the pictures themselves."""

import builtins
import re

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from gpusplu import gallery, plotting
from gpusplu.cli import main
from gpusplu.installed import install_hint
from gpusplu.plotting.draw import dense_from
from gpusplu.plotting.levels import front_flops
from gpusplu.plotting.memory import TILE

KINDS = ("density", "requests", "strides", "levels", "supernodes", "spy")


def unsymmetric(n, seed):
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=3 / n, rng=rng) + sp.diags_array(4 + rng.random(n))
    return sp.csc_array(A)


@pytest.fixture(scope="module")
def structure():
    return plotting.column_structure(unsymmetric(60, 1), ordering="amd")


def eliminate(structure):
    """Patterns of the remaining submatrix before every step, dense."""
    M = structure.B.toarray()
    n = structure.n
    for k in range(n):
        yield M[k:, k:].copy()
        M[k + 1 :, k + 1 :] |= np.outer(M[k + 1 :, k], M[k, k + 1 :])


def test_structure_is_the_elimination_of_the_permuted_pattern(structure):
    M = structure.B.toarray()
    for k in range(structure.n):
        M[k + 1 :, k + 1 :] |= np.outer(M[k + 1 :, k], M[k, k + 1 :])
    np.testing.assert_array_equal(M, (structure.L + structure.U + sp.eye_array(structure.n, dtype=bool)).toarray())


def test_remaining_density(structure):
    expected = [rest.mean() for rest in eliminate(structure)]
    np.testing.assert_allclose(plotting.remaining_density(structure), expected, rtol=1e-14)
    assert expected[-10] > expected[0]


def test_factor_density_is_that_of_trailing_blocks(structure):
    F = (structure.L + structure.U + sp.eye_array(structure.n, dtype=bool)).toarray()
    expected = [F[k:, k:].mean() for k in range(structure.n)]
    np.testing.assert_allclose(plotting.factor_density(structure), expected, rtol=1e-14)


def test_predictions_match_random_patterns():
    """Where entries begin independent, as the model assumes: the median density until it takes off, and when."""
    n, d, rng = 250, 0.06, np.random.default_rng(3)
    real, nnz, degrees = [], 0, np.zeros(n)
    trials = 12
    for _ in range(trials):
        M = (rng.random((n, n)) < d) | np.eye(n, dtype=bool)
        nnz += M.sum() / trials
        degrees += (M.sum(1) - 1) / trials
        real.append([])
        for k in range(n):
            real[-1].append(M[k:, k:].mean())
            M[k + 1 :, k + 1 :] |= np.outer(M[k + 1 :, k], M[k, k + 1 :])
    real = np.median(real, 0)
    for predicted in (plotting.uniform_density(n, nnz), plotting.predicted_density(degrees, degrees)):
        np.testing.assert_allclose(predicted[:10], real[:10], rtol=0.1)
        assert np.argmax(predicted > 0.5) == pytest.approx(np.argmax(real > 0.5), rel=0.35)
    assert real[9] > 1.5 * real[0] and np.argmax(real > 0.5) > 15


def test_prediction_by_degrees_knows_the_order():
    """Thin rows first make a later dense rest than thick rows first."""
    degrees = np.sort(np.random.default_rng(0).integers(1, 9, 2000)).astype(float)
    thin_first = plotting.predicted_density(degrees, degrees)
    thick_first = plotting.predicted_density(degrees[::-1], degrees[::-1])
    assert dense_from(thin_first) > 1.2 * dense_from(thick_first)


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


@pytest.mark.parametrize("bad", [{"division": 61}, {"division": -1}, {"first": 60}])
def test_memory_maps_reject_columns_outside(structure, bad):
    with pytest.raises(ValueError, match="60 columns"):
        plotting.memory_maps(structure, **bad)


def test_column_levels(structure):
    L, U = structure.L.toarray(), structure.U.toarray()
    for right in (False, True):
        level = np.zeros(structure.n, int)
        for k in range(structure.n):
            waits = np.flatnonzero(U[:k, k] | L[k, :k] if right else U[:k, k])
            level[k] = max((level[j] + 1 for j in waits), default=0)
        np.testing.assert_array_equal(plotting.column_levels(structure, right), level)
    assert plotting.column_levels(structure).max() > plotting.column_levels(structure, False).max()


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


def test_fronts_of_other_matrices():
    fronts = plotting.fronts(sp.csc_array(np.diag([1.0, 1, 1], 1) + np.diag([2.0, 1, 1, 1])), "natural")
    assert fronts.n == 4 and fronts.width.size >= 1
    with pytest.raises(RuntimeError, match="exactly singular"):
        plotting.fronts(sp.csc_array(np.diag([1.0, 0, 1])))


def test_operations_of_a_dense_front_are_those_of_a_dense_factorization():
    n = 40
    pivots = np.arange(n - 1, -1, -1)
    assert front_flops(np.array([n]), np.array([0]), False)[0] == (pivots + 2 * pivots**2).sum()
    assert front_flops(np.array([n]), np.array([0]), True)[0] == (pivots + pivots * (pivots + 1)).sum()
    parts = front_flops(np.array([15, 25]), np.array([25, 0]), False)
    assert parts.sum() == (pivots + 2 * pivots**2).sum()


def test_dense_from():
    assert dense_from(np.array([0.1, 0.6, 0.2, 0.5, 1.0])) == 3
    assert dense_from(np.array([0.1, 0.2])) == 2
    assert dense_from(np.array([1.0])) == 0


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


def test_drawn_bars_are_the_data(agg):
    fronts = plotting.fronts(gallery.poisson(13, 12), "nd")
    ax = plotting.draw_supernodes(fronts)
    np.testing.assert_array_equal([bar.get_height() for bar in ax.patches], np.bincount(fronts.level))
    spy = plotting.draw_spy(fronts, first=5)
    assert len(spy.collections[0].get_paths()) == ((fronts.width >= 2) & (fronts.first >= 5)).sum()


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
