"""Pictures of a factorization as curves: density, levels, supernodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .axes import BLUE, GREEN, GREY, ORANGE, RED, SKY, counted, new_axes, plain_ticks
from .density import factor_density, predicted_density, remaining_density, uniform_density
from .levels import Fronts, column_levels
from .structure import ColumnStructure

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
    ax.set(
        xscale="log",
        yscale="log",
        xlim=(n, 1),
        ylim=(None, 1.5),
        title=f"What elimination leaves: {n:,} columns, {B.nnz:,} entries",
        xlabel="columns that remain",
        ylabel="density of the remaining submatrix",
    )
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
    for right, color, name, width in (
        (False, ORANGE, "left-looking (U)", 4.0),
        (True, BLUE, "corrected (U and L)", 1.3),
    ):
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
