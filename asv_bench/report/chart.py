"""The chart of the README: peers' seconds over ours, case by case, from the records that the pages of results show."""

from .. import records
from .strips import STYLES, Strips

__all__ = ["STYLES", "chart"]

#: What the two columns of a section show: phases of the records, and their headings.
SYSTEMS = (("step", "new values and a solve"), ("total", "analysis and first factorization"))
WHOLE = (("total", "whole programs"), ("solver", "their time in solvers"))
ON_TWO_CORES = ("scipy", "klu", "cktso", "pardiso", "cholmod", "rslab")
#: Machine, suite and engine of a section, its columns, its rows: peers, those without records left out.
SECTIONS = (
    (("cpu2", "processor", "cpu"), SYSTEMS, ON_TWO_CORES),
    (("h200", "supernodal", "supernodal"), SYSTEMS, ("cudss",)),
    (("h200", "circuits", "auto"), SYSTEMS, ("cudss", "klu")),
    (("cpu2", "programs", "auto"), WHOLE, ("scipy",)),
    (("h200", "programs", "auto"), WHOLE, ("scipy",)),
)
PEERS = {
    "scipy": "SciPy",
    "klu": "KLU",
    "cktso": "CKTSO",
    "pardiso": "MKL PARDISO",
    "cholmod": "CHOLMOD",
    "rslab": "rslab",
    "cudss": "cuDSS",
    "feral": "feral-solver",
    "own_lu": "LU of our own",
    "hindsight": "best in hindsight",
    "jax_spsolve": "JAX's spsolve",
    "torch_sla": "torch-sla",
}
MACHINES = {"cpu2": "Two cores of an EPYC server", "h200": "One H200 and 16 cores of its host"}
WHAT = {
    "processor": "matrices of all kinds",
    "supernodal": "matrices of all kinds",
    "circuits": "circuits",
    "programs": "programs of others under gpusplu.install()",
}
SAY = "Seconds of other solvers over those of gpusplu, a dot a case"
RIGHT = "to the right of 1 gpusplu is faster"
HOW = "A bar is the geometric mean, also in figures. Log scale; dots beyond it lie at its ends."


def kept(machine, suite):
    """The records of the commit that the page of results shows."""
    files = [path for path in records.files(suite) if path.stem.split("-")[0] == machine]
    return records.one_commit(records.read(files))


def ratios(found, engine, phase, peer):
    """Peer's seconds over ours by case."""
    same = [record for record in found if (record["engine"], record["phase"], record["peer"]) == (engine, phase, peer)]
    return {
        record["case"]: record["peer_s"] / record["ours_s"] for record in same if record["ours_s"] and record["peer_s"]
    }


def chart(style):
    """The chart as SVG, in the colours of `STYLES`."""
    sections = []
    for (machine, suite, engine), phases, peers in SECTIONS:
        found = kept(machine, suite)
        strips = {peer: [ratios(found, engine, phase, peer) for phase, _ in phases] for peer in peers}
        rows = [(PEERS[peer], strips[peer]) for peer in peers if all(strips[peer])]
        sections.append((f"{MACHINES[machine]}: {WHAT[suite]}", [title for _, title in phases], rows))
    return Strips(2, 275).draw(SAY, RIGHT, HOW, sections, style)
