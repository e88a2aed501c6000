"""Progress bars on standard error: tqdm's, and a text line without tqdm."""

from __future__ import annotations

import sys
from typing import Any

WIDTH = 30  # of the bar in a `Line` [characters]
MEASURED, UNMEASURED = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}", "{desc} {elapsed}"


def is_terminal(stream: Any) -> bool:
    """Whether the stream is a terminal, where a line can be overwritten."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # no stream, or a closed one
        return False


def of_tqdm() -> Any:
    """The class of tqdm's bars, None where it is not installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


class TqdmBar:
    """A tqdm bar in percent; `measured`: the total work is known."""

    def __init__(self, made_by: Any, title: str, seconds: float, measured: bool):
        form = MEASURED if measured else UNMEASURED
        self._bar = made_by(total=100, desc=title, leave=False, bar_format=form)
        self._bar.start_t -= seconds

    def show(self, share: float | None, seconds: float) -> None:
        """Show the share of the work that is done, and the seconds."""
        self._bar.n = 100 * (share or 0.0)
        self._bar.refresh()

    def erase(self) -> None:
        """Clear the bar for a log line."""
        self._bar.clear()

    def close(self) -> None:
        self._bar.close()


class Line:
    """One line, overwritten on a terminal; elsewhere one line per tenth of the work."""

    def __init__(self, title: str):
        self._title, self._drawn, self._tenths = title, False, -1
        self._over = is_terminal(sys.stderr)

    def show(self, share: float | None, seconds: float) -> None:
        """Show the share of the work that is done, and the seconds."""
        if share is None:
            return self.draw(f"{seconds:.0f} s")
        left = f" of about {seconds / share:.0f} s" if share > 0 else ""
        self.draw(f"{drawn(share)} {share:4.0%}  {seconds:.0f} s{left}", int(10 * share))

    def draw(self, text: str, tenths: int = 0) -> None:
        """Draw a text after the title."""
        if self._over:
            sys.stderr.write(f"\r\x1b[K{self._title} {text}")
        elif tenths > self._tenths:
            sys.stderr.write(f"{self._title} {text}\n")
        self._drawn, self._tenths = True, tenths
        sys.stderr.flush()

    def erase(self) -> None:
        """Clear the bar for a log line."""
        if self._over and self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        self._drawn = False

    close = erase


def drawn(share: float) -> str:
    """A bar with a share of it filled."""
    filled = int(WIDTH * min(max(share, 0.0), 1.0))
    return "[" + "#" * filled + "." * (WIDTH - filled) + "]"
