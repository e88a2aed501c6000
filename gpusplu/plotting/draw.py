"""The pictures. Every function takes what the data functions return, and Axes to draw on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..installed import install_hint
from .density import factor_density, predicted_density, remaining_density, uniform_density
from .levels import Fronts, column_levels, entries_by_cell
from .memory import MemoryMaps, memory_maps
from .structure import ColumnStructure

# Okabe and Ito's colours: told apart by everybody.
BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#777777"
# Supernodes of fewer columns are not outlined: at this share of the plane they are points.
OUTLINED_SHARE = 1 / 250


def draw_density(structure: ColumnStructure, ax: Any = None) -> Any:
    """Density of the remaining submatrix as elimination proceeds, as it is and as predicted.

    Returns
    -------
    Axes

    See Also
    --------
    remaining_density

    Examples
    --------
    >>> structure = gs.plotting.column_structure(gs.gallery.rlc_mesh(8, 8))
    >>> axes = gs.plotting.draw_density(structure)
    >>> axes.get_yscale()
    'log'
    """
    ax = ax if ax is not None else new_axes()
    B, n = structure.B, structure.n
    rows = np.bincount(B.indices, minlength=n) - 1
    columns = np.diff(B.indptr) - 1
    left = np.arange(n, 0, -1)
    ax.plot(left, uniform_density(n, B.nnz), color=GREY, lw=1.3, ls=":", label="predicted, uniform")
    ax.plot(left, predicted_density(rows, columns), color=ORANGE, lw=1.6, ls="--", label="predicted, by degrees")
    ax.plot(left, factor_density(structure), color=GREEN, lw=1.3, label="L + U")
    ax.plot(left, remaining_density(structure), color=BLUE, lw=2, label="real")
    ax.set(
        xscale="log",
        yscale="log",
        xlim=(n, 1),
        ylim=(None, 1.5),
        xlabel=f"remaining columns of {n:,}",
        ylabel="density of the remaining submatrix",
    )
    ax.grid(alpha=0.3)
    ax.legend(loc="lower right", frameon=False)
    return ax


def draw_requests(structure: ColumnStructure, division: int | None = None, figure: Any = None) -> Any:
    """Memory requests on the matrix plane and, enlarged, in its corner: unblocked, and blocked at `division`.

    Parameters
    ----------
    structure : ColumnStructure
    division : int, optional
        First column of the dense trailing block; where the remaining submatrix becomes half full unless given.
    figure : Figure, optional
        To draw on.

    Returns
    -------
    Figure

    See Also
    --------
    memory_maps, draw_strides

    Examples
    --------
    >>> structure = gs.plotting.column_structure(gs.gallery.rlc_mesh(8, 8))
    >>> figure = gs.plotting.draw_requests(structure)
    """
    title = "requests"
    return _draw_maps(
        structure, division, figure, lambda m: m.requests, title, lambda m: f"{m.requests.sum():.3g} times"
    )


def draw_strides(structure: ColumnStructure, division: int | None = None, figure: Any = None) -> Any:
    """Mean memory strides on the matrix plane and, enlarged, in its corner; arguments as in :func:`draw_requests`.

    Returns
    -------
    Figure

    See Also
    --------
    memory_maps, draw_requests

    Examples
    --------
    >>> structure = gs.plotting.column_structure(gs.gallery.rlc_mesh(8, 8))
    >>> figure = gs.plotting.draw_strides(structure)
    """

    def total(maps: MemoryMaps) -> str:
        return f"mean {maps.strides.sum() / max(maps.hops.sum(), 1):.3g}, {maps.hops.sum():.3g} times"

    return _draw_maps(structure, division, figure, lambda m: m.mean_stride, "mean stride [entries]", total)


def _draw_maps(
    structure: ColumnStructure,
    division: int | None,
    figure: Any,
    part: Callable[[MemoryMaps], np.ndarray],
    label: str,
    total: Callable[[MemoryMaps], str],
) -> Any:
    """Two columns of pictures, unblocked and blocked; two rows, the plane and its corner."""
    pyplot = import_pyplot()
    from matplotlib.colors import LogNorm

    n = structure.n
    p = dense_from(remaining_density(structure)) if division is None else division
    windows = sorted({0, max(0, n - 3 * (n - p))} - {n})
    figure = figure if figure is not None else pyplot.figure(figsize=(9.6, 4.4 * len(windows)), layout="constrained")
    axes = figure.subplots(len(windows), 2, squeeze=False)
    for line, first in zip(axes, windows, strict=True):
        maps = [memory_maps(structure, None, first), memory_maps(structure, p, first)]
        pictures = [np.where(part(m) > 0, part(m), np.nan) for m in maps]
        high = max(np.nanmax(picture, initial=2) for picture in pictures)
        for ax, m, picture, name in zip(line, maps, pictures, ("unblocked", f"blocked at p = {p:,}"), strict=True):
            norm = LogNorm(1, high)
            extent = (first, n, n, first)
            image = ax.imshow(picture, cmap="viridis", norm=norm, extent=extent, interpolation="nearest")
            ax.set(title=f"{name}: {total(m)}", xlabel="column", ylabel="row", facecolor="#f2f2f2")
            ax.locator_params(nbins=5)
            ax.axhline(p, color=RED, lw=0.7, ls="--")
            ax.axvline(p, color=RED, lw=0.7, ls="--")
        figure.colorbar(image, ax=line, label=label, shrink=0.9)
    return figure


def dense_from(density: np.ndarray, share: float = 0.5) -> int:
    """First step from which on the remaining submatrix is at least `share` full."""
    thin = np.flatnonzero(density < share)
    return int(thin[-1]) + 1 if thin.size else 0


def draw_levels(structure: ColumnStructure, ax: Any = None) -> Any:
    """Columns of every level, under the left-looking and the corrected right-looking rule.

    Returns
    -------
    Axes

    See Also
    --------
    column_levels

    Examples
    --------
    >>> structure = gs.plotting.column_structure(gs.gallery.rlc_mesh(8, 8))
    >>> axes = gs.plotting.draw_levels(structure)
    >>> axes.get_xlabel()
    'level'
    """
    ax = ax if ax is not None else new_axes()
    for right, color, name, width in (
        (False, ORANGE, "left-looking (U)", 1.6),
        (True, BLUE, "corrected (U and L)", 1.2),
    ):
        counts = np.bincount(column_levels(structure, right))
        ax.stairs(counts, color=color, lw=width, label=f"{name}: {counts.size:,} levels")
    ax.set(yscale="log", xlabel="level", ylabel="columns", xlim=(0, None), ylim=(0.8, None))
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    return ax


def draw_supernodes(structure: Fronts, ax: Any = None) -> Any:
    """Supernodes and operations of every level of the supernode tree.

    Returns
    -------
    Axes
        Of the supernodes; operations are on its twin.

    See Also
    --------
    fronts

    Examples
    --------
    >>> fronts = gs.plotting.fronts(gs.gallery.poisson(20, 20), cholesky=True)
    >>> axes = gs.plotting.draw_supernodes(fronts)
    """
    ax = ax if ax is not None else new_axes()
    counts = np.bincount(structure.level)
    flops = np.bincount(structure.level, structure.flops)
    levels = np.arange(counts.size)
    ax.bar(levels - 0.2, counts, 0.4, color=BLUE, label="supernodes")
    ax.set(yscale="log", xlabel="level of the supernode tree (leaves: 0)", ylim=(0.8, None))
    ax.set_ylabel("supernodes", color=BLUE)
    twin = ax.twinx()
    twin.bar(levels + 0.2, np.maximum(flops, 1), 0.4, color=ORANGE, label="operations")
    twin.set(yscale="log")
    twin.set_ylabel("operations [flop]", color=RED)
    ax.set_title(f"{counts.sum():,} supernodes, {counts.size} levels, {flops.sum():.3g} flop")
    return ax


def draw_spy(structure: Fronts, first: int = 0, ax: Any = None) -> Any:
    """Pattern of L + U, or of its rows and columns from `first` on, and outlines of the fronts' diagonal blocks.

    Returns
    -------
    Axes

    See Also
    --------
    fronts, entries_by_cell

    Examples
    --------
    >>> fronts = gs.plotting.fronts(gs.gallery.poisson(20, 20), cholesky=True)
    >>> axes = gs.plotting.draw_spy(fronts)
    >>> axes.get_ylabel()
    'row'
    """
    ax = ax if ax is not None else new_axes((6.6, 5.6))
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Rectangle

    n = structure.n
    edges, counts = entries_by_cell(structure, first)
    side = np.diff(edges)
    density = counts / np.outer(side, side)
    image = ax.imshow(
        np.where(density > 0, density, np.nan),
        cmap="Blues",
        norm=LogNorm(max(np.nanmin(density[density > 0]) / 3, 1e-5), 1),
        extent=(first, n, n, first),
        interpolation="nearest",
    )
    wide = np.flatnonzero(structure.width >= max(2, (n - first) * OUTLINED_SHARE))
    wide = wide[structure.first[wide] >= first]
    boxes = [Rectangle((b, b), w, w) for b, w in zip(structure.first[wide], structure.width[wide], strict=True)]
    ax.add_collection(PatchCollection(boxes, facecolor="none", edgecolor=RED, lw=1))
    ax.set(
        title=f"L + U: {counts.sum():,.0f} entries, {wide.size} of {structure.width.size:,} fronts outlined",
        xlabel="column",
        ylabel="row",
        xlim=(first, n),
        ylim=(n, first),
    )
    ax.figure.colorbar(image, ax=ax, label="density of a cell")
    return ax


def import_pyplot() -> Any:
    """matplotlib.pyplot, or an ImportError that says how to get it."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib: {install_hint('plot')}") from error
    return pyplot


def new_axes(size: tuple[float, float] = (7.2, 4.4)) -> Any:
    """Axes of a figure of their own [inches]."""
    figure = import_pyplot().figure(figsize=size, layout="constrained")
    return figure.subplots()
