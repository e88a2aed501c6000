"""The commands: list, run SUITE, report [SUITE ... | chart]."""

import argparse
import sys
from pathlib import Path

from . import options, peers, records, report, suites

DOCS = Path(__file__).resolve().parents[1] / "docs"
RESULTS, PICTURES = DOCS / "performance" / "results", DOCS / "_static"


def main(words=None):
    parser = argparse.ArgumentParser(prog="python -m asv_bench", description="Measurements of gpusplu.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="suites, experiments and peers")
    for command, text in (("run", "measure, and append records to --out"), ("child", argparse.SUPPRESS)):
        of_suites = commands.add_parser(command, help=text).add_subparsers(dest="suite", required=True)
        for name in suites.NAMES:
            suite, shape = suites.named(name), argparse.RawTextHelpFormatter
            one = of_suites.add_parser(
                name, help=suites.describe(name), description=suite.__doc__, formatter_class=shape
            )
            options.add_common(one, suite)
    reporting = commands.add_parser("report", help="pages of tables from records")
    reporting.add_argument("suite", nargs="*", help="names, or chart; default: all with records, index, chart")
    reporting.add_argument("--records", nargs="+", type=Path, help="files; default: those in asv_bench/records")
    reporting.add_argument("--commit", help="whose records; default: the newest with all cases")
    reporting.add_argument("--into", type=Path, help="folder of pages; default: printed, or docs if no suite is named")
    arguments = parser.parse_args(words)
    {"list": list_all, "run": run, "child": child, "report": make_report}[arguments.command](arguments)


def list_all(arguments):
    for title, names in (("suites", suites.REGULAR), ("experiments", suites.EXPERIMENTS)):
        print(title, *(f"  {name:18s} {suites.describe(name)}" for name in names), sep="\n")
    print("peers")
    for name in peers.NAMES:
        peer = peers.named(name)
        print(f"  {name:18s} {peer.missing() or peer.__doc__.splitlines()[0]}")


def run(arguments):
    """Each record is written as soon as it is made; the tables of all follow."""
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
        return report.draw_chart(arguments.into or PICTURES)
    wanted = arguments.suite or [name for name in suites.NAMES if records.files(name)]
    into = arguments.into or (None if arguments.suite else RESULTS)
    for name in wanted:
        if name not in suites.NAMES:
            sys.exit(f"no suite {name!r}; `python -m asv_bench list` names them")
        files = arguments.records or records.files(name)
        if not files:
            sys.exit(f"no records of {name}")
        deliver(report.page(name, files, arguments.commit), into, name)
        if into:
            report.draw(name, files, into, arguments.commit)
    if not arguments.suite:
        deliver(report.index(wanted), into, "index")
        report.draw_chart(arguments.into or PICTURES)


def deliver(text, folder, name):
    """Print a page, or write it to a folder."""
    if folder is None:
        print(text)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(text)


if __name__ == "__main__":
    main()
