"""Pages of tables from records: one a suite, of the records of one commit."""

from .. import records, suites
from . import circuits, comparison, crisscross, glu, pictures, processor, sflu, streaming, supernodal
from .further import COLUMNS
from .strips import STYLES
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
    found = shown(files, commit)
    if len(found) == 1:
        ((name, ours),) = found.items()
        body = [command, *images(suite, ours, name), tables(suite, ours)]
        return "\n\n".join([*head, f"{origin(ours)} Machine: {records.MACHINES[name]}.", *body]) + "\n"
    parts = []
    for name, ours in found.items():
        machine = records.MACHINES[name]
        heading = f"## {machine[0].upper()}{machine[1:]}"
        parts += [heading, origin(ours), *images(suite, ours, name), deeper(tables(suite, ours))]
    return "\n\n".join([*head, command, *parts]) + "\n"


def shown(files, commit=None):
    """The records of one commit of each machine, by its short name."""
    found = records.by_machine(files)
    return {
        name: records.one_commit(records.read(found[machine]), commit)
        for name, machine in records.MACHINES.items()
        if machine in found
    }


def images(suite, found, machine):
    """The picture of these records in a page, for light and for dark; none where there is nothing to compare."""
    if not pictures.picture(suite, found, "light"):
        return []
    alternative = "What other solvers, or other ways, take over what ours takes, a dot a case"
    options = f":class: dark-light\n:alt: {alternative}\n:width: 100%"
    return [
        f"```{{figure}} {file_name(suite, machine, style)}\n:figclass: only-{style}\n{options}\n```" for style in STYLES
    ]


def drawn(suite, files, commit=None):
    """The pictures of a page by file name."""
    return {
        file_name(suite, machine, style): svg
        for machine, found in shown(files, commit).items()
        for style in STYLES
        if (svg := pictures.picture(suite, found, style))
    }


def file_name(suite, machine, style):
    return f"{suite}_{machine}_{style}.svg"


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
