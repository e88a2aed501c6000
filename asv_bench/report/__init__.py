"""Pages of tables and pictures from records: one page per suite, of the records of one commit per machine."""

from .. import records, suites
from . import circuits, columns, pictures, supernodal
from .scaling import scaling
from .tables import COLUMNS, comparison, origin, processor, streaming

OWN = {
    "processor": processor,
    "scaling": scaling,
    "supernodal": supernodal.tables,
    "circuits": circuits.tables,
    "streaming": streaming,
    "glu": columns.glu,
    "sflu": columns.sflu,
    "crisscross": columns.crisscross,
}
INDEX = """# Results

Tables of measurements, made from the records in `asv_bench/records` by `python -m asv_bench report`; a test compares
them with the records. Each page shows one commit. [](../benchmarks.md) describes how the suites measure,
[](../gpu.md) and [](../../internals/engines/index.md) what follows from the results.

{items}

```{{toctree}}
:hidden:

{names}
```
"""


def tables(suite, found):
    """All tables of records of a suite, as Markdown."""
    return OWN[suite](found) if suite in OWN else comparison(found, COLUMNS.get(suite, ()))


def page(suite, files, commit=None):
    """The page of a suite: origin of its records, and tables, machine by machine.

    The records of each machine are those of `commit`, or of the newest complete one.
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
        lower = "\n".join(f"#{line}" if line.startswith("#") else line for line in tables(suite, ours).split("\n"))
        parts += [f"## {machine[0].upper()}{machine[1:]}", origin(ours), *images(suite, ours, name), lower]
    return "\n\n".join([*head, command, *parts]) + "\n"


def shown(files, commit=None):
    """The records of one commit of each machine, by its short name."""
    return {
        name: records.one_commit(records.read(of_machine), commit)
        for name, of_machine in records.by_machine(files).items()
    }


def images(suite, found, machine):
    """The picture of these records in a page, for light and for dark pages; none if there is nothing to compare."""
    picture = pictures.picture(suite, found)
    if not picture:
        return []
    options = f":class: dark-light\n:alt: {picture.alternative}\n:width: 100%"
    return [
        f"```{{figure}} {suite}_{machine}_{style}.svg\n:figclass: only-{style}\n{options}\n```"
        for style in pictures.STYLES
    ]


def of_page(suite, files, commit=None):
    """The pictures of a page by machine."""
    found = {machine: pictures.picture(suite, ours) for machine, ours in shown(files, commit).items()}
    return {machine: picture for machine, picture in found.items() if picture}


def draw(suite, files, folder, commit=None):
    """Draw the pictures of a page."""
    for machine, picture in of_page(suite, files, commit).items():
        draw_styles(picture, folder, f"{suite}_{machine}")


def draw_chart(folder):
    """Draw the chart of the README."""
    draw_styles(pictures.chart(), folder, "chart")


def draw_styles(picture, folder, name):
    folder.mkdir(parents=True, exist_ok=True)
    for style in pictures.STYLES:
        pictures.draw(picture, style, folder / f"{name}_{style}.svg")


def index(names):
    """The page that lists the others."""
    items = "\n".join(f"- [{name}]({name}.md): {suites.describe(name)}" for name in names)
    return INDEX.format(items=items, names="\n".join(names))
