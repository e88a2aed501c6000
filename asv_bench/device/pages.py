"""Records of measurements, tables of them, and the pages of the documentation that these stand in."""

import argparse
import json
from pathlib import Path


def records_of(paths):
    """Every record of files with one a line."""
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def latest(records):
    """Those of the commit and day of the last one."""
    return [record for record in records if all(record[key] == records[-1][key] for key in ("commit", "date"))]


def by_variant(records):
    """The last record of each case and variant."""
    found = {}
    for record in records:
        found.setdefault(record["case"], {})[record["variant"]] = record
    return found


def origin(records):
    """Commits and dates that records come from, as a sentence."""
    made = sorted({(record["commit"], record["date"]) for record in records})
    return "Commit and date: " + ", ".join(f"{commit} of {date}" for commit, date in made) + "."


def markdown(header, rows):
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def deliver(made, begin, end, description):
    """What a report's command line asks for: `made(records)` printed, or put between two marks of a file."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("records", nargs="+", type=Path)
    parser.add_argument("--into", type=Path)
    arguments = parser.parse_args()
    text = made(arguments.records)
    if arguments.into is None:
        print(text)
        return
    before, rest = arguments.into.read_text().split(begin)
    arguments.into.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}")
