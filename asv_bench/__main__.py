"""The commands: list, run SUITE, report [SUITE ... | chart]."""

import argparse
import sys
from pathlib import Path

from . import options, peers, records, report, suites
from .report import chart

DOCS = Path(__file__).resolve().parents[1] / "docs"
RESULTS, PICTURES = DOCS / "performance" / "results", DOCS / "_static"


def main(words=None):
    parser = argparse.ArgumentParser(prog="python -m asv_bench", description="Measurements of gpusplu.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="suites and peers")
    for command, text in (("run", "measure, and append records to --out"), ("child", argparse.SUPPRESS)):
        add_suites(commands.add_parser(command, help=text))
    reporting = commands.add_parser("report", help="pages of tables from records")
    reporting.add_argument("suite", nargs="*", help="all with records, an index and the chart, or names, or chart")
    reporting.add_argument("--records", nargs="+", type=Path, help="files; those that are kept unless given")
    reporting.add_argument("--commit", help="whose records; the newest with all cases unless given")
    reporting.add_argument("--into", type=Path, help="folder of pages, printed unless given; the documentation for all")
    arguments = parser.parse_args(words)
    {"list": list_all, "run": run, "child": child, "report": make_report}[arguments.command](arguments)


def add_suites(parser):
    """A parser a suite, with the arguments in common and its own."""
    of_suites = parser.add_subparsers(dest="suite", required=True)
    for name in suites.NAMES:
        suite = suites.named(name)
        one = of_suites.add_parser(
            name, help=suites.describe(name), description=suite.__doc__, formatter_class=argparse.RawTextHelpFormatter
        )
        options.add_common(one, suite)


def list_all(arguments):
    print("suites")
    for name in suites.NAMES:
        print(f"  {name:18s} {suites.describe(name)}")
    print("peers")
    for name in peers.NAMES:
        peer = peers.named(name)
        print(f"  {name:18s} {peer.missing() or peer.__doc__.splitlines()[0]}")


def run(arguments):
    """Records are kept as soon as they are made; tables of all follow."""
    options.prepare(arguments)
    made = []
    for record in suites.named(arguments.suite).run(arguments):
        made.append(record)
        if arguments.out:
            records.append(arguments.out, [record])
    if not made:
        sys.exit(f"{arguments.suite}: nothing was measured")
    print(report.tables(arguments.suite, made))


def child(arguments):
    options.prepare(arguments)
    suites.named(arguments.suite).child(arguments)


def make_report(arguments):
    if arguments.suite == ["chart"]:
        return make_chart(arguments.into or PICTURES)
    wanted = arguments.suite or [name for name in suites.NAMES if records.files(name)]
    into = arguments.into or (None if arguments.suite else RESULTS)
    for name in wanted:
        if name not in suites.NAMES:
            sys.exit(f"no suite {name!r}; `python -m asv_bench list` names them")
        files = arguments.records or records.files(name)
        if not files:
            sys.exit(f"no records of {name}")
        deliver(report.page(name, files, arguments.commit), into, name)
        for picture, svg in report.drawn(name, files, arguments.commit).items() if into else ():
            (into / picture).write_text(svg)
    if not arguments.suite:
        deliver(report.index(wanted), into, "index")
        make_chart(arguments.into or PICTURES)


def make_chart(folder):
    """The chart of the README, for light and for dark pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for style in chart.STYLES:
        (folder / f"chart_{style}.svg").write_text(chart.chart(style))


def deliver(text, folder, name):
    """A page printed, or put into a folder."""
    if folder is None:
        print(text)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(text)


if __name__ == "__main__":
    main()
