"""Pictures of a factor, and of an analysis, as methods: ``lu.plot.spy()``."""

from __future__ import annotations

from typing import Any

from .drawing import draw_density, draw_levels, draw_requests, draw_spy, draw_strides, draw_supernodes
from .roofline import draw_roofline, engine_roof, points
from .structures import ColumnStructure, Fronts, fronts_of, structure_of
from .timeline import draw_timeline, timeline


class SymbolicPlots:
    """Pictures of an analysis; ``symbolic.plot``.

    Examples
    --------
    >>> symbolic = gs.analyze(gs.gallery.poisson(40, 40), cholesky=True)
    >>> axes = symbolic.plot.supernodes()
    """

    def __init__(self, core: Any):
        self._core = core

    def _fronts(self) -> Fronts:
        """
        Raises
        ------
        ValueError
            There are none.
        """
        if self._core.method != "front":
            raise ValueError(
                "columns are eliminated one by one here, without fronts; gpusplu.plotting.fronts(A) has them"
            )
        return fronts_of(self._core)

    def spy(self, first: int = 0, ax: Any = None) -> Any:
        """Pattern of L + U with outlines of its fronts, from row and column `first` on.

        Parameters
        ----------
        first : int, optional
        ax : Axes, optional
            To draw on.

        Returns
        -------
        Axes

        Examples
        --------
        >>> symbolic = gs.analyze(gs.gallery.poisson(40, 40), cholesky=True)
        >>> axes = symbolic.plot.spy()
        """
        return draw_spy(self._fronts(), first, ax)

    def supernodes(self, ax: Any = None) -> Any:
        """Supernodes and operations of every level of the supernode tree.

        Parameters
        ----------
        ax : Axes, optional
            To draw on.

        Returns
        -------
        Axes

        Examples
        --------
        >>> symbolic = gs.analyze(gs.gallery.poisson(40, 40), cholesky=True)
        >>> axes = symbolic.plot.supernodes()
        """
        return draw_supernodes(self._fronts(), ax)


class FactorPlots(SymbolicPlots):
    """Pictures of a factor; ``lu.plot``.

    Examples
    --------
    >>> lu = gs.splu(gs.gallery.rlc_mesh(8, 8))
    >>> axes = lu.plot.spy()
    >>> axes.figure.savefig("spy.svg")  # doctest: +SKIP
    """

    def __init__(self, factor: Any):
        super().__init__(factor.parts()[0].symbolic)
        self._factor = factor

    def _structure(self) -> ColumnStructure:
        """Patterns of the current factor."""
        return structure_of(self._factor.parts()[0].host_factor(), self._factor.symbolic.parts()[0].pattern)

    def spy(self, first: int = 0, ax: Any = None) -> Any:
        """Pattern of L + U, of fronts with their outlines, from row and column `first` on.

        Parameters
        ----------
        first : int, optional
        ax : Axes, optional
            To draw on.

        Returns
        -------
        Axes

        Examples
        --------
        >>> axes = gs.splu(gs.gallery.rlc_mesh(8, 8)).plot.spy()
        """
        return draw_spy(self._fronts() if self._core.method == "front" else self._structure(), first, ax)

    def density(self, ax: Any = None) -> Any:
        """Density of the submatrix that remains as elimination proceeds, as it is and as predicted.

        Parameters
        ----------
        ax : Axes, optional
            To draw on.

        Returns
        -------
        Axes

        Examples
        --------
        >>> axes = gs.splu(gs.gallery.rlc_mesh(8, 8)).plot.density()
        """
        return draw_density(self._structure(), ax)

    def levels(self, ax: Any = None) -> Any:
        """Columns of every level, those that can be factored at the same time.

        Parameters
        ----------
        ax : Axes, optional
            To draw on.

        Returns
        -------
        Axes

        Examples
        --------
        >>> axes = gs.splu(gs.gallery.rlc_mesh(8, 8)).plot.levels()
        """
        return draw_levels(self._structure(), ax)

    def requests(self, division: int | None = None, figure: Any = None) -> Any:
        """Memory requests of a factorization by columns; see :func:`gpusplu.plotting.draw_requests`.

        Parameters
        ----------
        division : int, optional
            First column of the dense trailing block.
        figure : Figure, optional
            To draw on.

        Returns
        -------
        Figure

        Examples
        --------
        >>> figure = gs.splu(gs.gallery.rlc_mesh(8, 8)).plot.requests()
        """
        return draw_requests(self._structure(), division, figure)

    def strides(self, division: int | None = None, figure: Any = None) -> Any:
        """Memory strides of a factorization by columns; see :func:`gpusplu.plotting.draw_strides`.

        Parameters
        ----------
        division : int, optional
            First column of the dense trailing block.
        figure : Figure, optional
            To draw on.

        Returns
        -------
        Figure

        Examples
        --------
        >>> figure = gs.splu(gs.gallery.rlc_mesh(8, 8)).plot.strides()
        """
        return draw_strides(self._structure(), division, figure)

    def timeline(self, figure: Any = None) -> Any:
        """Phases, and for fronts on the processor their threads and times: the values are factored once more, in
        addition to this factor.

        Parameters
        ----------
        figure : Figure, optional
            To draw on.

        Returns
        -------
        Figure

        Examples
        --------
        >>> figure = gs.cholesky(gs.gallery.poisson(40, 40)).plot.timeline()
        """
        return draw_timeline(timeline(self._factor), figure)

    def roofline(self, ax: Any = None) -> Any:
        """The last factorization and the last solve below the roof of this machine, which is measured: about a second.

        Parameters
        ----------
        ax : Axes, optional
            To draw on.

        Returns
        -------
        Axes

        Examples
        --------
        >>> axes = gs.cholesky(gs.gallery.poisson(40, 40)).plot.roofline()
        """
        return draw_roofline(engine_roof(self._factor), points(self._factor), ax)
