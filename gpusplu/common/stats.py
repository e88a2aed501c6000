"""Results of lu.stats and lu.explain()."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from . import notebook

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


class Stats(Mapping[str, Any]):
    """Read-only mapping with its entries as attributes: ``lu.stats["flops"]`` is ``lu.stats.flops``.

    See Also
    --------
    Explanation

    Examples
    --------
    >>> stats = gs.splu(gs.gallery.poisson(10, 10)).stats
    >>> stats.nnz, stats["engine"]
    (460, 'cpu')
    >>> sorted(stats.seconds)
    ['analyze', 'canonicalize', 'factor', 'refactor', 'solve']
    """

    __slots__ = ("_entries",)

    if TYPE_CHECKING:  # of every factor; engines and batches have more, and these may lack some
        engine: str
        method: str
        ordering: str
        analysis: str
        symmetric: bool
        n: int
        nnz: int
        nnz_factor: int
        fill: float
        bytes: int
        flops: float
        n_refactor: int
        n_solve: int
        backward_error: float | None
        seconds: dict[str, float]

    def __init__(self, entries: Mapping[str, Any]):
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> Any:
        return self._entries[name]

    def __getattr__(self, name: str) -> Any:
        try:
            return self._entries[name]
        except KeyError:
            raise AttributeError(f"stats has no {name!r}; it has {', '.join(self._entries)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __dir__(self) -> list[str]:
        return list(self._entries)

    def __reduce__(self) -> tuple[Any, ...]:
        return Stats, (self._entries,)

    def __repr__(self) -> str:
        width = max(map(len, self._entries), default=0)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in self._shown())

    def _repr_html_(self) -> str:
        return notebook.named_values("", self._shown())

    def _shown(self) -> list[tuple[str, str]]:
        return [(name, durations(value) if name == "seconds" else show(value)) for name, value in self.items()]


class Memory(NamedTuple):
    """Memory of a first factorization, and what is free.

    Attributes
    ----------
    host_peak : int
        Memory of the host at the peak of analysis and factorization, the matrix not counted; within 10% for factors of
        50 MB and more [bytes].
    host_free : int or None
        What this process may use, None if the system does not say it [bytes].
    device_peak : int or None
        Device memory of the factor, about; None without a device [bytes].
    device_free : int or None
        Free memory of the device with least [bytes].

    Examples
    --------
    >>> memory = gs.explain(gs.gallery.poisson(100, 100)).memory
    >>> memory.host_peak < memory.host_free
    True
    """

    host_peak: int
    host_free: int | None
    device_peak: int | None = None
    device_free: int | None = None


class Explanation(str):
    """Text of explain(), which notebooks show as tables.

    Parameters
    ----------
    rows : list of (str, str)
        Names and texts.
    heading : str, optional
        Heading of the table.
    table : list of lists of str, optional
        The header, then the rows; a row of two cells is a name and a note.
    memory : Memory, optional
        Of a matrix that is not structurally singular.

    Attributes
    ----------
    memory : Memory or None
        Memory that a factorization needs, and that is free.

    See Also
    --------
    explain, LUFactor.explain

    Examples
    --------
    >>> explanation = gs.explain(gs.gallery.poisson(10, 10))
    >>> explanation.splitlines()[0]
    'matrix    100 x 100, 460 entries, float64'
    """

    def __new__(
        cls,
        rows: Iterable[tuple[str, str]],
        heading: str = "",
        table: Iterable[Sequence[str]] = (),
        memory: Memory | None = None,
    ) -> Self:
        rows, cells = list(rows), [list(line) for line in table]
        lines = [f"{name:<10}{text}" for name, text in rows]
        if cells:
            lines += [heading, *map(table_row, cells)]
        explanation = super().__new__(cls, "\n".join(lines))
        explanation._parts = rows, heading, cells
        explanation.memory = memory
        return explanation

    memory: Memory | None
    _parts: tuple[list[tuple[str, str]], str, list[list[str]]]

    def __reduce__(self) -> tuple[Any, ...]:
        return Explanation, (*self._parts, self.memory)

    def _repr_html_(self) -> str:
        rows, heading, table = self._parts
        html = notebook.named_values("", rows)
        return html + notebook.grid(heading, table[0], table[1:]) if table else html


def table_row(cells: Sequence[str]) -> str:
    """A line of text: a name and cells of one width, or a name and a note."""
    name, *rest = cells
    return f"  {name:<11} {rest[0]}" if len(rest) == 1 else f"  {name:<11}" + "".join(f"{cell:>15}" for cell in rest)


def stats_of(factor: Any, core: Any, analysis: str) -> Stats:
    """Stats of a `Factor` with the engine's factor `core`; `analysis`: text about the origin of its analysis."""
    symbolic = core.symbolic  # differs from the factor's first analysis if it was analysed again
    entries = dict(core.stats())
    seconds = dict(factor.symbolic.seconds)
    for phase in ("factor", "refactor", "solve"):
        seconds[phase] = entries.pop(f"{phase}_seconds")
    return Stats(
        {
            "engine": factor.engine,
            "method": core.method,
            "symmetric": symbolic.kind == "ldlt",
            "analysis": analysis,
            "ordering": symbolic.ordering,
            "n": symbolic.n,
            "nnz": symbolic.nnz,
            "nnz_factor": factor.nnz,
            "fill": factor.nnz / max(symbolic.nnz, 1),
            "column_levels": symbolic.column_levels,
            "super_levels": symbolic.super_levels,
            "critical_path": symbolic.critical_path,
            **entries,
            "backward_error": factor.backward_error,
            "seconds": seconds,
        }
    )


def show(value: Any) -> str:
    """A value as text, numbers with few digits."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}"


def duration(value: float) -> str:
    """Seconds with a unit; a dash for 0."""
    if not value:
        return "-"
    scale, unit = next((one for one in UNITS if value >= one[0]), UNITS[-1])
    return f"{value / scale:.3g} {unit}"


def durations(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{phase} {duration(value)}" for phase, value in seconds.items() if value)


def column(title: str, seconds: Sequence[float | None]) -> list[str]:
    """Title and cells of a column of a table, all in the unit of the largest value; a dash for none."""
    largest = max((value for value in seconds if value is not None), default=0.0)
    scale, unit = next((one for one in UNITS if largest >= one[0]), UNITS[-1])
    return [
        f"{title} [{unit}]" if largest else title,
        *(three_digits(value / scale) if value else "-" for value in seconds),
    ]


def three_digits(value: float) -> str:
    """Three significant digits, or all digits before the point."""
    return f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"
