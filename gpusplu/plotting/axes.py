"""Axes to draw on, and colours that all readers can distinguish, on light and dark backgrounds."""

from __future__ import annotations

from typing import Any

from ..common.installed import install_hint

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
