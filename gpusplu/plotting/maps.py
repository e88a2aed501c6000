"""Pictures of the matrix plane: memory requests and strides, and the pattern of L + U."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .axes import RED, counted, import_pyplot, is_dark, new_axes, plain_ticks
from .density import remaining_density
from .levels import Fronts, entries_by_cell
from .memory import MemoryMaps, memory_maps
from .structure import ColumnStructure

# Supernodes of fewer columns are not outlined: at this share of the plane they are points.
OUTLINED_SHARE = 1 / 250


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
    image = ax.imshow(
        np.where(density > 0, density, np.nan),
        cmap="Blues_r" if is_dark(ax) else "Blues",
        norm=LogNorm(max(np.nanmin(density[density > 0]) / 3, 1e-5), 1),
        extent=(first, n, n, first),
        interpolation="nearest",
    )
    held = " with the zeros of fronts" if isinstance(structure, Fronts) else ""
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
