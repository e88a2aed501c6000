"""What tables are made with: cells, rows, means, and where records come from."""

from gpusplu.cli.report import seconds

from ..timing import geomean

__all__ = ["by_variant", "geomean", "markdown", "means", "number", "origin", "seconds", "time", "us"]


def by_variant(records):
    """The last record of each case and variant."""
    found = {}
    for record in records:
        found.setdefault(record["case"], {})[record["variant"]] = record
    return found


def origin(records):
    """Commit and date that records come from, as a sentence."""
    made = sorted({(record["commit"], record.get("date")) for record in records if "commit" in record})
    of = ", ".join(f"{commit} of {date}" if date else f"{commit} (no date was recorded)" for commit, date in made)
    return f"Commit {of}."


def markdown(header, rows):
    """A table with its first column to the left, the others to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def time(value):
    """A duration; a dash for none."""
    return "-" if not value else seconds(value) if value >= 5e-8 else "< 0.1 us"


def us(value):
    """Whole microseconds."""
    return f"{1e6 * value:,.0f}"


def number(value, style=".2f"):
    """A number; a dash for none."""
    return "-" if value is None else format(value, style)


def means(ratios):
    """Geometric mean and least of ratios by name, as text."""
    return ", ".join(f"{name} {geomean(found):.2f} (least {min(found):.2f})" for name, found in ratios.items() if found)
