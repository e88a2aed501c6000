"""Drawing: axes and colours, curves (density, levels, supernodes), and pictures of the matrix plane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..common.installed import install_hint
from .elimination import (
    MemoryMaps,
    factor_density,
    memory_maps,
    predicted_density,
    remaining_density,
    uniform_density,
)
from .structures import ColumnStructure, Fronts, column_levels, entries_by_cell

# Okabe and Ito's colours.
BLUE, SKY, ORANGE, GREEN, RED, GREY = "#0072b2", "#56b4e9", "#e69f00", "#009e73", "#d55e00", "#8a8a8a"


def import_pyplot() -> Any:
    """matplotlib.pyplot, or an ImportError with the command that installs it."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib: {install_hint('plot')}") from error
    return pyplot


def new_axes(size: tuple[float, float] = (7.2, 4.4)) -> Any:
    """Axes of a new figure of this size [inches]."""
    figure = import_pyplot().figure(figsize=size, layout="constrained")
    return figure.subplots()


def is_dark(ax: Any) -> bool:
    """Whether its background is."""
    from matplotlib.colors import to_rgb

    return sum(to_rgb(ax.get_facecolor())) < 1.5


def plain_ticks(axis: Any) -> None:
    """Plain numbers on a logarithmic axis that is already drawn: 200, not 2 x 10^2."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    low, high = axis.get_view_interval()
    several = max(low, high) < 50 * min(low, high)  # not many powers of ten
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if several else (1,), numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: counted(value)))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def counted(value: float) -> str:
    """A number with an SI prefix: 1.2 k, 35 M."""
    for scale, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * scale:
            return f"{value / scale:.3g} {prefix}"
    return f"{value:.3g}"


MARKED = 40  # largest number of levels with individual markers


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
    # Curves that may coincide: the wide ones below, the thin ones on top.
    ax.plot(left, remaining_density(structure), color=SKY, lw=4, label="real", solid_capstyle="butt")
    ax.plot(left, factor_density(structure), color=GREEN, lw=1.2, label="L + U")
    ax.plot(left, predicted_density(rows, columns), color=ORANGE, lw=2.4, label="predicted, by degrees")
    ax.plot(left, uniform_density(n, B.nnz), color=GREY, lw=1.2, ls="--", label="predicted, uniform")
    ax.set(xscale="log", yscale="log", xlim=(n, 1), ylim=(None, 1.5))
    ax.set(xlabel="columns that remain", ylabel="density of the remaining submatrix")
    ax.set_title(f"What elimination leaves: {n:,} columns, {B.nnz:,} entries")
    plain_ticks(ax.xaxis)
    ax.grid(alpha=0.3)
    ax.legend(loc="lower right", frameon=False)
    return ax


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
    rules = (False, ORANGE, "left-looking (U)", 4.0), (True, BLUE, "corrected (U and L)", 1.3)
    for right, color, name, width in rules:
        counts = np.bincount(column_levels(structure, right))
        ax.stairs(counts, color=color, lw=width, label=f"{name}: {counts.size:,} levels")
    title = f"Columns that can be factored at the same time, of {structure.n:,}"
    ax.set(yscale="log", title=title, xlabel="level", ylabel="columns", xlim=(0, None), ylim=(0.8, None))
    plain_ticks(ax.yaxis)
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
    levels, marker = np.arange(counts.size), "o" if counts.size <= MARKED else ""
    twin = ax.twinx()
    ax.plot(levels, counts, color=BLUE, marker=marker, ms=6, lw=1.6, label="supernodes")
    twin.plot(levels, np.maximum(flops, 1), color=RED, marker=marker and "s", ms=5, lw=1.6, ls="--", label="operations")
    ax.set(yscale="log", xlabel="level of the supernode tree (leaves: 0)", ylim=(0.8, None))
    twin.set(yscale="log")
    for axes, color, label in ((ax, BLUE, "supernodes (solid)"), (twin, RED, "operations [flop] (dashed)")):
        axes.set_ylabel(label, color=color)
        axes.tick_params(axis="y", which="both", labelcolor=color)
        plain_ticks(axes.yaxis)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_title(f"{counts.sum():,} supernodes, {counts.size} levels, {counted(flops.sum())}flop")
    ax.grid(alpha=0.3)
    return ax


# Supernodes of fewer columns are not outlined: at this share of the plane they are points.
OUTLINED_SHARE = 1 / 250


def draw_requests(structure: ColumnStructure, division: int | None = None, figure: Any = None) -> Any:
    """Memory requests on the matrix plane and, enlarged, in its corner: unblocked, and blocked at `division`.

    Parameters
    ----------
    structure : ColumnStructure
    division : int, optional
        First column of the dense trailing block; default: where the remaining submatrix becomes half full.
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

    def total(maps: MemoryMaps) -> str:
        return f"{counted(maps.requests.sum())} requests"

    return _draw_maps(structure, division, figure, lambda m: m.requests, "requests", total)


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
        return f"mean {maps.strides.sum() / max(maps.hops.sum(), 1):.3g} of {counted(maps.hops.sum())} strides"

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
    figure = figure if figure is not None else pyplot.figure(figsize=(9.6, 4.7 * len(windows)), layout="constrained")
    axes = figure.subplots(len(windows), 2, squeeze=False)
    for line, first in zip(axes, windows, strict=True):
        maps = [memory_maps(structure, None, first), memory_maps(structure, p, first)]
        pictures = [np.where(part(m) > 0, part(m), np.nan) for m in maps]
        high = max(np.nanmax(picture, initial=2) for picture in pictures)
        names = "unblocked", f"blocked from column {p:,} on"
        for ax, m, picture, name in zip(line, maps, pictures, names, strict=True):
            norm = LogNorm(1, high)
            extent = (first, n, n, first)
            image = ax.imshow(picture, cmap="viridis", norm=norm, extent=extent, interpolation="nearest")
            ax.set(xlabel="column", ylabel="row")
            ax.set_title(f"{name}\n{total(m)}", fontsize="medium")
            ax.locator_params(nbins=5)
            ax.axhline(p, color=RED, lw=0.7, ls="--")
            ax.axvline(p, color=RED, lw=0.7, ls="--")
        bar = figure.colorbar(image, ax=line, label=label, shrink=0.9)
        plain_ticks(bar.ax.yaxis)
    return figure


def dense_from(density: np.ndarray) -> int:
    """First step from which on the remaining submatrix is at least half full."""
    thin = np.flatnonzero(density < 0.5)
    return int(thin[-1]) + 1 if thin.size else 0


def draw_spy(structure: Fronts | ColumnStructure, first: int = 0, ax: Any = None) -> Any:
    """Pattern of L + U, or of its rows and columns from `first` on; of fronts with outlines of their diagonal blocks.

    Returns
    -------
    Axes

    See Also
    --------
    fronts, column_structure, entries_by_cell

    Examples
    --------
    >>> fronts = gs.plotting.fronts(gs.gallery.poisson(20, 20), cholesky=True)
    >>> axes = gs.plotting.draw_spy(fronts)
    >>> axes.get_ylabel()
    'row'
    """
    ax = ax if ax is not None else new_axes((6.6, 5.6))
    from matplotlib.colors import LogNorm

    n = structure.n
    edges, counts = entries_by_cell(structure, first)
    side = np.diff(edges)
    density = counts / np.outer(side, side)
    norm = LogNorm(max(np.nanmin(density[density > 0]) / 3, 1e-5), 1)
    cells, colours = np.where(density > 0, density, np.nan), "Blues_r" if is_dark(ax) else "Blues"
    image = ax.imshow(cells, cmap=colours, norm=norm, extent=(first, n, n, first), interpolation="nearest")
    held = " including zeros in fronts" if isinstance(structure, Fronts) else ""
    title = f"L + U{held}: {counts.sum():,.0f} entries"
    if isinstance(structure, Fronts):
        outlined = _outline_fronts(structure, first, ax)
        title += f"\n{outlined:,} of {structure.width.size:,} fronts outlined"
    ax.set(xlabel="column", ylabel="row", xlim=(first, n), ylim=(n, first))
    ax.set_title(title, fontsize="medium")
    ax.figure.colorbar(image, ax=ax, label="density of a cell")
    return ax


def _outline_fronts(structure: Fronts, first: int, ax: Any) -> int:
    """Draw the diagonal blocks of fronts that are large enough to be visible; returns their number."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    wide = np.flatnonzero(structure.width >= max(2, (structure.n - first) * OUTLINED_SHARE))
    wide = wide[structure.first[wide] >= first]
    boxes = [Rectangle((b, b), w, w) for b, w in zip(structure.first[wide], structure.width[wide], strict=True)]
    ax.add_collection(PatchCollection(boxes, facecolor="none", edgecolor=RED, lw=1))
    return int(wide.size)
