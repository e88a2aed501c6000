"""Pages of tables from records: one a suite, of the records of one commit."""

from .. import records, suites
from . import circuits, comparison, crisscross, glu, processor, sflu, streaming, supernodal
from .further import COLUMNS
from .tables import origin

OWN = {
    "processor": processor.tables,
    "supernodal": supernodal.tables,
    "circuits": circuits.tables,
    "streaming": streaming.tables,
    "glu": glu.tables,
    "sflu": sflu.tables,
    "crisscross": crisscross.tables,
}


def tables(suite, found):
    """All tables of records of a suite, as Markdown."""
    return OWN[suite](found) if suite in OWN else comparison.tables(found, COLUMNS.get(suite, ()))


def page(suite, files, commit=None):
    """The page of a suite: where its records come from, and tables of them, machine by machine.

    Of each machine those of `commit`, or of the newest complete one.
    """
    commands = "\n".join(f"python -m asv_bench {words}" for words in (f"run {suite} --out FILE", f"report {suite}"))
    head = [f"# {suite}", suites.describe(suite)]
    command = f"```bash\n{commands}\n```"
    found = {name: records.one_commit(records.read(paths), commit) for name, paths in records.by_machine(files).items()}
    if len(found) == 1:
        ((name, ours),) = found.items()
        return "\n\n".join([*head, f"{origin(ours)} Machine: {name}.", command, tables(suite, ours)]) + "\n"
    parts = [
        f"## {name[0].upper()}{name[1:]}\n\n{origin(ours)}\n\n{deeper(tables(suite, ours))}"
        for name, ours in found.items()
    ]
    return "\n\n".join([*head, command, *parts]) + "\n"


def deeper(text):
    """Markdown with its headings one level down."""
    return "\n".join(f"#{line}" if line.startswith("#") else line for line in text.split("\n"))


INDEX = """# Results

Tables of measurements, made of the records in `asv_bench/records` by `python -m asv_bench report`; a test holds that
they are what the records say. Each page is of one commit. [](../benchmarks.md) says how the suites measure,
[](../gpu.md) and [](../../internals/engines/index.md) what follows from it.

{items}

```{{toctree}}
:hidden:

{names}
```
"""


def index(names):
    """The page that lists the others."""
    items = "\n".join(f"- [{name}]({name}.md): {suites.describe(name)}" for name in names)
    return INDEX.format(items=items, names="\n".join(names))
