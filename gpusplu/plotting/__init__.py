"""Pictures of factorizations; matplotlib comes with ``pip install 'gpusplu[plot]'`` and is imported when one is drawn.

The numbers behind them are ordinary functions: :func:`remaining_density`, :func:`factor_density`,
:func:`predicted_density`, :func:`uniform_density`, :func:`memory_maps`, :func:`column_levels` and
:func:`entries_by_cell`, over the structures that :func:`column_structure` (column LU) and :func:`fronts` (supernodes)
find.

>>> from gpusplu import plotting
>>> axes = plotting.draw_spy(plotting.fronts(gs.gallery.poisson(20, 20)))
>>> axes.figure.savefig("spy.svg")  # doctest: +SKIP
"""

from .density import factor_density, predicted_density, remaining_density, uniform_density
from .draw import draw_density, draw_levels, draw_requests, draw_spy, draw_strides, draw_supernodes
from .levels import Fronts, column_levels, entries_by_cell, fronts
from .memory import MemoryMaps, memory_maps
from .structure import ColumnStructure, column_structure

__all__ = [
    "ColumnStructure",
    "Fronts",
    "MemoryMaps",
    "column_levels",
    "column_structure",
    "draw_density",
    "draw_levels",
    "draw_requests",
    "draw_spy",
    "draw_strides",
    "draw_supernodes",
    "entries_by_cell",
    "factor_density",
    "fronts",
    "memory_maps",
    "predicted_density",
    "remaining_density",
    "uniform_density",
]
