"""Pictures of factorizations, also as methods of factors: ``lu.plot.spy()``.

matplotlib comes with ``pip install 'gpusplu[plot]'`` and is imported when a picture is drawn. The numbers behind them
are ordinary functions: :func:`remaining_density`, :func:`factor_density`, :func:`predicted_density`,
:func:`uniform_density`, :func:`memory_maps`, :func:`column_levels` and :func:`entries_by_cell`, over the structures
that :func:`column_structure` (column LU) and :func:`fronts` (supernodes) find; :func:`timeline`; :func:`machine` and
:func:`points`.

>>> from gpusplu import plotting
>>> axes = plotting.draw_spy(plotting.fronts(gs.gallery.poisson(20, 20)))
>>> axes.figure.savefig("spy.svg")  # doctest: +SKIP
"""

from .drawing import draw_density, draw_levels, draw_requests, draw_spy, draw_strides, draw_supernodes
from .elimination import (
    MemoryMaps,
    factor_density,
    memory_maps,
    predicted_density,
    remaining_density,
    uniform_density,
)
from .methods import FactorPlots, SymbolicPlots
from .roofline import Machine, Point, draw_roofline, machine, points
from .structures import ColumnStructure, Fronts, column_levels, column_structure, entries_by_cell, fronts
from .timeline import Timeline, draw_timeline, timeline

__all__ = [
    "ColumnStructure",
    "FactorPlots",
    "Fronts",
    "Machine",
    "MemoryMaps",
    "Point",
    "SymbolicPlots",
    "Timeline",
    "column_levels",
    "column_structure",
    "draw_density",
    "draw_levels",
    "draw_requests",
    "draw_roofline",
    "draw_spy",
    "draw_strides",
    "draw_supernodes",
    "draw_timeline",
    "entries_by_cell",
    "factor_density",
    "fronts",
    "machine",
    "memory_maps",
    "points",
    "predicted_density",
    "remaining_density",
    "timeline",
    "uniform_density",
]
