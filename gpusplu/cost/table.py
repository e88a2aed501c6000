"""The table of constants of all predictions, including those of the core and of plans for devices.

An entry is a sum of constants times features (model.py), or it belongs to a model that is more than a sum, inside the
core or inside an engine. ``python -m gpusplu bench --calibrate`` fits the first kind (calibration.py); constants of the
second kind follow one of the first: all of them change by the same factor. The core gets the entries that
kernels/shared/costs.hpp names, as one object (`for_core` in calibration.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .model import Costs, Term

ENGINE = "the engine's own"
GALLERY = "an H200 and 16 threads of its host, a Xeon, in double precision and from Python: bench --calibrate"
ZEN = "two threads of a Zen 4 server at 2.6 GHz"
ONE = "one thread of a Zen 4 server at 2.6 GHz"
FRONTS = "an H200 in double precision: 22 matrices"
COLUMNS = "an H200 in double precision: circuits"


class Entry(NamedTuple):
    """Constants by feature.

    Attributes
    ----------
    constants : mapping
        By feature.
    source : str
        Machine and method of the measurement.
    unit : str
        For each unit of a feature.
    follows : tuple of str or None
        Entry and feature of the constant that determines the factor by which these change.
    modelled : tuple of str
        Features that are seconds which other entries, the followers, predict: calibration changes those, and the
        constants here, which are ratios, stay.
    """

    constants: Term
    source: str
    unit: str = "s"
    follows: tuple[str, str] | None = None
    modelled: tuple[str, ...] = ()


def _by_phase(prefix: str, follows: tuple[str, str | None], **constants: tuple[float, ...]) -> dict[str, Entry]:
    """Entries of a plan of fronts for its four phases, which follow the constant of that phase unless one is named."""
    entries = {}
    for k, phase in enumerate(("warp", "small", "block", "large")):
        of_phase = {name: values[k] for name, values in constants.items()}
        entries[f"{prefix}.{phase}"] = Entry(of_phase, FRONTS, "us", (follows[0], follows[1] or phase))
    return entries


_PREDICTIONS = {
    # Import of CuPy and start of a context; kernels that are not in the cache yet; analysis of a matrix for a device
    # with every candidate ordering; then, for a factor, uploads and the making of graphs.
    "start.load": {"call": 0.5},
    "start.compile": {"call": 4.0},
    "start.analyze": {"call": 1.7e-3, "rows": 1e-6, "entries": 1.8e-8},
    "start.factor": {"call": 1.2e-3, "bytes": 8e-10},
    # Transfers of values and vectors through pinned host memory by nodes of a graph; for an engine on the processor,
    # copies from the device and back.
    "move.to_device": {"call": 1e-6, "bytes": 5e-11},
    "move.to_host": {"call": 50e-6, "bytes": 1.2e-10},
    "columns.analyze": {"call": 0.9e-3, "rows": 1.3e-7, "entries": 1.9e-7},
    "glu.plan": {"call": 1e-5, "rows": 2.5e-7, "fill": 2.5e-7, "flops": 1e-12},
    # A level of the whole pattern costs about a hop between two blocks, 0.84 us, and less if a block owns several.
    "glu.refactor": {"call": 2e-6, "levels": 1e-6, "fill": 5.5e-10, "flops": 5.9e-12},
    "glu.solve": {"call": 2.1e-5, "levels": 9.8e-7, "fill": 3.9e-10},
    "sflu.plan": {"call": 3e-5, "rows": 2.5e-7, "fill": 1e-7, "flops": 1e-12},
    "sflu.refactor": {"call": 1.9e-5, "levels": 1.2e-6, "fill": 1.4e-10, "flops": 4.6e-12},
    "sflu.solve": {"call": 2.3e-5, "levels": 9.6e-7, "fill": 3.9e-10},
    "crisscross.plan": {"call": 1e-3, "rows": 3.5e-6, "fill": 2e-7, "flops": 1e-12},
    "crisscross.refactor": {"call": 3.4e-5, "levels": 5.9e-7, "fill": 7e-10, "flops": 4e-12},
    "crisscross.solve": {"call": 5.9e-5, "levels": 2.1e-7, "fill": 2.2e-10},
}

# The phases of both methods of the CPU engine, right within a factor of two on most of the real matrices: its analysis
# chooses the method and the ordering by them, whatever other engines there are. Seconds of one thread, except flops of
# fronts: the choice must not depend on the number of threads, and matrices that may go either way have little work for
# more than one.
_METHODS = {
    "cpu.column.factor": {"call": 2e-6, "rows": 39e-9, "entries": 0.0, "fill": 7.4e-9, "flops": 0.34e-9},
    "cpu.column.refactor": {"call": 0.5e-6, "rows": 16e-9, "fill": 3.9e-9, "flops": 0.036e-9, "alone": 0.0},
    "cpu.column.solve": {"call": 1e-6, "rows": 6.2e-9, "fill": 0.47e-9, "flops": 0.0004e-9},
    "cpu.front.factor": {"call": 12e-6, "rows": 59e-9, "entries": 5.8e-9, "fill": 7.6e-9, "flops": 0.027e-9},
    "cpu.front.refactor": {"call": 5e-6, "rows": 41e-9, "entries": 1.5e-9, "fill": 0.68e-9, "flops": 0.028e-9},
    "cpu.front.solve": {"call": 2e-6, "rows": 23e-9, "fill": 0.26e-9, "flops": 0.001e-9},
    "cpu.ldlt.factor": {"call": 12e-6, "rows": 50e-9, "entries": 5.2e-9, "fill": 6.4e-9, "flops": 0.016e-9},
    "cpu.ldlt.refactor": {"call": 5e-6, "rows": 41e-9, "entries": 1.5e-9, "fill": 0.68e-9, "flops": 0.018e-9},
    "cpu.ldlt.solve": {"call": 2e-6, "rows": 18e-9, "fill": 0.21e-9, "flops": 0.0008e-9},
}

_table: dict[str, Entry] = {
    **{name: Entry(constants, GALLERY) for name, constants in _PREDICTIONS.items()},
    **{name: Entry(constants, ONE + ": asv_bench run methods") for name, constants in _METHODS.items()},
    # Costs by which the CPU engine decides which supernodes to merge: of a front of any size, of a pivot besides its
    # arithmetic, of arithmetic, of assembly. Only ratios matter, and the optimum is flat: half or twice any of them
    # moves the refactorization of seven circuit and FEM matrices by 0 to 4% in geometric mean.
    "cpu.supernodes": Entry({"fronts": 0.1e-6, "columns": 0.02e-6, "flops": 1 / 4e9, "bytes": 1 / 8e9}, ZEN),
    # How the CPU engine maps fronts to threads, and how many it wakes for a solve or an update.
    "cpu.tasks": Entry(
        {"fronts": 150e-9, "entries": 0.7e-9, "multiply_adds": 1 / 20e9, "visits": 50e-9, "bytes": 1 / 8e9},
        ZEN,
        follows=("cpu.front.refactor", "flops"),
    ),
    # How much of that work makes a task, makes a front share its loops, and justifies a further thread. It is that of a
    # refactorization; a selected inverse takes about twice as much.
    "cpu.threads": Entry(
        {"leaf": 20e-6, "team": 400e-6, "factor": 250e-6, "inverse": 125e-6, "solve": 120e-6},
        ZEN,
        follows=("cpu.front.refactor", "call"),
    ),
    # As for supernodes, but a front is one of 8 systems in lockstep: they share its costs besides arithmetic, and small
    # factors are better, because they are read from memory. On a device, where a front is one of 32 systems, the
    # constants are older: smaller ones were not measured there.
    "lockstep.merging": Entry({"fronts": 5e-9, "columns": 2e-9, "flops": 1 / 4e9, "bytes": 1 / 8e9}, ZEN),
    "supernodal.lockstep": Entry(
        {"fronts": 20e-9, "columns": 5e-9, "flops": 1 / 4e9, "bytes": 1 / 8e9},
        ZEN,
        follows=("lockstep.merging", "flops"),
    ),
    "cpu.dissection": Entry({"rows": 0.8e-6, "entries": 0.06e-6}, ZEN),
    # The plan of fronts predicts the phases of a refactorization, and a solve; these constants are its error factors.
    "supernodal.refactor": Entry(
        {"call": 7e-6, "warp": 1.2, "small": 1.5, "block": 1.0, "large": 1.0},
        GALLERY,
        "s for call, else ratios",
        modelled=("warp", "small", "block", "large"),
    ),
    "supernodal.solve": Entry(
        {"call": 17e-6, "modelled": 0.65}, GALLERY, "s for call, else a ratio", modelled=("modelled",)
    ),
    # The cost that the merging of fronts minimizes, by class. A third of the measured fixed costs gave the best
    # measured times: merging by the full ones adds more work than it saves.
    **_by_phase(
        "supernodal.merge",
        ("supernodal.refactor", None),
        front=(1.2, 2.0, 2.0, 8.0),
        few=(1.2, 2.0, 2.0, 32.0),
        pivot=(0.10, 0.11, 0.11, 0.32),
        flop=(5e-4, 1.25e-5, 1.25e-5, 8e-8),
        scalar=(0, 8e-5, 8e-5, 5e-6),
    ),
    # Time of a front once its children are done: alone on its multiprocessor, in phase 3 on the device.
    **_by_phase(
        "supernodal.front",
        ("supernodal.refactor", None),
        front=(3.0, 3.5, 4.0, 5.0),
        batch=(0.7, 1.0, 1.0, 0),
        pivot=(0.02, 0.16, 0.16, 0.32),
        pivot_cholesky=(0.02, 0.16, 0.16, 0.21),
        scalar=(0, 1 / 4.5e3, 1 / 5.5e3, 1 / 3e5),
        flop=(1 / 1e3, 1 / 1e5, 1 / 1.5e5, 0),
        between=(0, 0, 2, 0),
        launch=(3, 5, 6, 6),
    ),
    **_by_phase(
        "supernodal.way",
        ("supernodal.solve", "modelled"),
        front=(2.0, 2.5, 2.5, 6.0),
        pivot=(0, 0.04, 0.04, 0.03),
        full=(132 * 2e-3, 132 * 5e-3, 132 * 10e-3, 0),
    ),
    "supernodal.device": Entry(
        {"flop": 132 / 2.5e7, "slow_flop": 1 / 6e3, "byte": 1 / 3e6, "solve": 6},
        FRONTS,
        "us",
        ("supernodal.refactor", "large"),
    ),
    "supernodal.tiles": Entry(
        {
            "front": 10e-6,
            "task": 6e-6,
            "column": 3e-6,
            "pivot": 20e-6,
            "pivot_cholesky": 13e-6,
            "flop": 1 / 20e12,
            "flop_d": 1 / 40e12,
            "flop_D": 1 / 12e12,
        },
        FRONTS,
        follows=("supernodal.refactor", "large"),
    ),
    "supernodal.tickets": Entry(
        {"warp": 2.0, "front": 2.5, "panel": 0.2, "byte": 1 / 8e4}, FRONTS, "us", ("supernodal.solve", "modelled")
    ),
    "supernodal.copy": Entry({"byte": 1 / 5.5e4}, FRONTS, "us", ("move.to_device", "bytes")),
    # Transfers between devices: a copy, a byte with peer access and through the host; and the two launches of a stage
    # of a shared front. Copies of 16 and 256 MB ran at 324 and 389 GB/s; transfers through the host and stages were not
    # measured separately. They change with the rate of the host's own link.
    "supernodal.link": Entry(
        {"copy": 10e-6, "byte": 1 / 370e9, "byte_by_host": 1 / 20e9, "launch": 6e-6},
        "copies between H200 of one host, by NVLink",
        follows=("move.to_device", "bytes"),
    ),
    # The schedule of glu predicts a refactorization. A level costs a hop between blocks or, as a node of a graph, a
    # little more; a chunk costs its part of a multiprocessor, in batch mode also of the counter of the tickets. A
    # launch of pipelines begins with loads that depend on each other; a column of one costs a trip to shared memory and
    # a barrier, an update its conflicts of banks.
    "glu.model": Entry({"schedule": 1.0}, COLUMNS, "ratio", modelled=("schedule",)),
    "glu.schedule": Entry(
        {
            "launch": 2.0,
            "hop": 1.5,
            "cluster_piece": 0.0034,
            "batch_piece": 0.0057,
            "pipeline": 3.0,
            "column": 0.45,
            "update": 1 / 4000,
        },
        COLUMNS,
        "us",
        ("glu.model", "schedule"),
    ),
    # Costs that decide which columns a block processes instead of a warp; only ratios matter.
    "columns.longest": Entry(
        {"update": 0.15e-6, "level": 1e-6, "block": 10e-6, "depth": 0.3e-6, "round": 1e-6, "terms": 0.4e-6},
        COLUMNS,
        follows=("sflu.refactor", "levels"),
    ),
    # The curves that determine the division point of crisscross (engines/crisscross/model.py).
    "crisscross.model": Entry({"sparse": 1.0, "dense": 1.0}, COLUMNS, "ratio", modelled=("sparse", "dense")),
    "crisscross.columns": Entry(
        {
            "start": 14e-6,
            "column": 0.48e-6,
            "update": 0.067e-6,
            "slice": 0.12e-6,
            "long_column": 22e-6,
            "long_depth": 0.0,
        },
        COLUMNS,
        follows=("crisscross.model", "sparse"),
    ),
    "crisscross.trailing": Entry(
        {"trailing": 9e-6, "wave": 1.1e-6, "depth": 0.3e-6, "entry": 4e-9, "own": 1.2e-9, "term": 5e-12},
        COLUMNS,
        follows=("crisscross.model", "sparse"),
    ),
    # Measured over planned time of a front alone on the device, if it fits a block, and in tiles.
    "crisscross.dense": Entry({"block": 0.71, "tiles": 1.07}, COLUMNS, "ratio", ("crisscross.model", "dense")),
}


def add(terms: Costs) -> None:
    """Add the constants of an engine that is not built in; they can be fitted."""
    _table.update({name: Entry(constants, ENGINE) for name, constants in terms.items()})


def entries() -> Mapping[str, Entry]:
    """All entries by name."""
    return _table


def shipped() -> Costs:
    """Constants that are used until a machine is calibrated."""
    return {name: entry.constants for name, entry in _table.items()}
