"""Benchmarks: suites and peers have the same interface, records are complete, pages and pictures show the records."""

import ast
import os
import re
import subprocess
import sys

import pytest

from asv_bench import __main__, peers, processes, records, report, suites
from asv_bench.phases import PHASES
from asv_bench.report import pictures
from support.asv_bench_package import FOLDER

RESULTS, CHARTS = __main__.RESULTS, __main__.PICTURES
PUBLIC = {"gpusplu", "gpusplu.gallery", "gpusplu.common.timing", "gpusplu.common.stats", "gpusplu.cli.report"}
KEPT = [name for name in suites.NAMES if records.files(name)]


def test_every_suite_is_listed():
    for folder, names in (("suites", suites.REGULAR), ("experiments", suites.EXPERIMENTS)):
        assert {path.stem for path in (FOLDER / folder).glob("*.py")} - {"__init__"} == set(names)
    assert len(suites.REGULAR) <= 10


def test_only_internals_imports_internals():
    """Other files import public modules of gpusplu, use no private attributes, and leave sys.path unchanged."""
    found = []
    for path in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and not node.level and node.module.split(".")[0] == "gpusplu":
                names = [f"gpusplu.{alias.name}" for alias in node.names] if node.module == "gpusplu" else [node.module]
                if path.name != "internals.py":
                    found += [(path.name, name) for name in names if name not in PUBLIC]
            elif isinstance(node, ast.Attribute):
                owner, private = getattr(node.value, "id", ""), re.match("_[^_]", node.attr)
                if (private and owner != "self") or (owner, node.attr) == ("sys", "path"):
                    found.append((path.name, node.attr))
    assert found == []


def check(path):
    """The records of a file, complete and with values of the right types."""
    found = records.read([path])
    for record in found:
        assert tuple(record)[: len(records.KEYS)] == records.KEYS
        assert all(record[key] for key in ("case", "engine", "phase", "peer", "commit", "date"))
        assert all(record[key] is None or record[key] >= 0 for key in ("ours_s", "peer_s", "backward_error"))
        assert (record["backward_error"] or 0) < 1e-12
    return found


# Commands by suite, without a device or in the emulator; those of experiments run in thorough tests.
RUNS = {
    "processor": "--cases poisson:5x5 rlc:5x5 --peer scipy --budget 0.001",
    "scaling": "--threads 2,1,3 --cases rlc:5x5 --ends 3-of-poisson:5x5 --peer scipy --budget 0.001",
    "one_shot": "--cases rlc:5x5 --repeat 1",
    "ldlt": "--cases kkt:40x20x1 --peer own_lu --budget 0.001",
    "methods": "--cases rlc:5x5 power:6x6 --repeat 1 --fit",
    "dense": "--cases 4x8 --peer none",
    "schur": "--cases poisson:6x6 --unknowns 6 --peer none --budget 0.001",
    "inverse": "--cases poisson:6x6 kkt:40x20x1 rlc:5x5 --budget 0.001",
    "updates": "--cases poisson:6x6 --ranks 2 --peer none --repeat 1",
    "precision": "--cases poisson:6x6 --budget 0.001",
    "programs": "--cases odes.bdf odes.radau --scale 0.06 --repeat 1",
    "memory": "--cases no_such_matrix rlc:5x5",
    "neighbours": "--cases rlc:5x5 --situations alone --large rlc:6x6 --budget 0.001",
    "gradients": "--cases rlc:5x5 --systems 2 --repeat 1 --peer jax_spsolve",
    "tensors": "--cases rlc:5x5 --systems 2 --repeat 1 --peer none",
}
SLOW = {"scaling", "programs", "memory", "neighbours", "gradients", "tensors", "precision"}  # processes, JAX, torch
EMULATED = {
    "supernodal": "--cases convdiff:4 --peer none --budget 0.001",
    "batches": "--cases rlc:5x5 --systems 3 --peer none",
    "captured": "--cases rlc:5x5 --engines sflu --systems 3",
    "streaming": "--cases poisson:9x9x9 --shares 1 0.6",
    "suspect_systems": "--cases poisson:6x5 --systems 35",
    "moves": "--cases rlc:5x5 --uses 1,3 --budget 0.001 --longest 1e9",
    "glu": "--cases rlc:5x5 --variants choice cluster",
    "sflu": "--cases rlc:5x5",
    "crisscross": "--cases rlc:5x5 --sizes 0,8 --orderings auto",
    "right_hand_sides": "--cases poisson:4x4x4 --columns 1,3",
    "sanitize": "--cases rlc:16x16 --scalars d --engines sflu --apart",
}


@pytest.mark.usefixtures("quick_collections")
@pytest.mark.filterwarnings("ignore:Sparse (CSR tensor support|invariant checks)")
@pytest.mark.parametrize("suite", [pytest.param(name, marks=[pytest.mark.thorough] * (name in SLOW)) for name in RUNS])
def test_run(suite, tmp_path, capsys):
    if suite == "gradients":
        pytest.importorskip("jax.numpy", reason="needs JAX: pip install gpusplu[jax]")
    if suite == "tensors":
        pytest.importorskip("torch", reason="torch is not installed")
    out = tmp_path / "records.jsonl"
    __main__.main(["run", suite, *RUNS[suite].split(), "--out", str(out)])
    made = check(out)
    assert {record["case"] for record in made} <= set(RUNS[suite].split())
    assert any(record["ours_s"] for record in made) or suite == "memory"
    printed = capsys.readouterr().out
    assert f"| {made[0]['case']}" in printed
    assert "no_such_matrix" not in printed  # a failure ends one case
    if suite == "processor":
        assert all(record["peer"] == "scipy" and record["peer_s"] for record in made if record["phase"] != "analyze")


def test_scaling_tables():
    """Speedups from one thread to all, the worst step to more threads, peers with all; a curve a phase."""

    def of(case, threads, ours, peer="cktso", theirs=None):
        return records.make(case, "cpu", "refactor", ours, peer, theirs, threads=threads, others=0.0, steal=0.0)

    made = [of("a", 8, 1.0, theirs=3.0), of("a", 8, 1.0, "klu", 2.0), of("a", 1, 4.0, theirs=8.0)]
    made += [of("a", 2, 2.0, theirs=5.0), of("a", 4, 2.5, theirs=4.0), of("b", 8, 2.0, "none"), of("b", 1, 1.0, "none")]
    text = report.tables("scaling", made)
    assert "| a | 4 s | 2 s | 2.5 s | 1 s | 4.00 | 0.50 | 1.25 at 4 | 3.00 | 2.00 |" in text
    assert "| b | 1 s | - | - | 2 s | 0.50 | 0.06 | 2.00 at 8 | - | - |" in text
    assert "| refactor | 1.41 (0.50 b) | 0.18 (0.06 b) | 1.58 (2.00 b) | 3.00 (3.00 a) | 2.00 (2.00 a) |" in text
    assert "not idle" not in text
    made[0]["steal"] = 1.5
    assert "others used up to 1.5 processors" in report.tables("scaling", made)

    (case, lines), (_, without_peer) = pictures.picture("scaling", made).panels
    assert case == "a"
    assert lines["new values"] == {1: 1.0, 2: 2.0, 4: 1.6, 8: 4.0}
    assert lines[pictures.BEST] == {1: 0.5, 2: 0.8, 4: 1.0, 8: 2.0}
    assert without_peer == {"new values": {1: 1.0, 8: 0.5}}
    assert suites.named("scaling").in_order(16) == [16, 1, 8, 4, 2]
    assert suites.named("scaling").in_order(6) == [6, 1, 4, 2]


def command(*lines, path=()):
    """What several commands print, in one process of their own."""
    environment = processes.environment()
    environment["PYTHONPATH"] = os.pathsep.join([environment["PYTHONPATH"], *map(str, path)])
    script = f"from asv_bench.__main__ import main\nfor line in {lines!r}: main(line.split())"
    made = subprocess.run([sys.executable, "-P", "-c", script], env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_circuits_without_a_device(tmp_path):
    """A child process measures one case after another, and continues after one that fails; `list` names everything."""
    out, cases = tmp_path / "records.jsonl", ("rlc:5x5", "rlc:6x6")
    options = f"--engines cpu,auto_host --peer none --budget 0.001 --out {out}"
    text = command("list", f"run circuits --cases {cases[0]} no_such_matrix {cases[1]} {options}")
    assert all(f"  {name} " in text for name in (*suites.NAMES, *peers.NAMES))
    assert "| rlc:6x6 | cpu |" in text
    found = {(record["case"], record["engine"]) for record in check(out)}
    assert found == {(case, engine) for case in cases for engine in ("cpu", "auto_host")}


@pytest.mark.parametrize(
    "names", [["supernodal", "batches", "captured", "streaming"], pytest.param([*EMULATED], marks=pytest.mark.thorough)]
)
def test_with_a_device(names, tmp_path):
    """In the emulator."""
    lines = [f"run {name} {EMULATED[name]} --emulated --out {tmp_path / name}" for name in names]
    command(*lines, path=[FOLDER.parent / "tests"])
    for name in names:
        assert {record["case"] for record in check(tmp_path / name)} == {EMULATED[name].split()[1]}


@pytest.mark.parametrize("name", [*KEPT, "index"])
def test_pages_show_the_records(name):
    """`python -m asv_bench report` writes them."""
    page = report.index(KEPT) if name == "index" else report.page(name, records.files(name))
    assert (RESULTS / f"{name}.md").read_text() == page
    drawn = {} if name == "index" else report.of_page(name, records.files(name))
    for machine, picture in drawn.items():
        for style in pictures.STYLES:
            assert pictures.digest(picture) in (RESULTS / f"{name}_{machine}_{style}.svg").read_text()
    assert len([*RESULTS.glob(f"{name}_*.svg")]) == len(drawn) * len(pictures.STYLES)


def test_every_page_has_records():
    assert {path.stem for path in RESULTS.glob("*.md")} == {*KEPT, "index"}
    assert {*records.FOLDER.iterdir()} == {path for name in KEPT for path in records.files(name)}


def test_the_chart_shows_the_records(monkeypatch):
    """One dot per case of all records; rows only for peers that have records. `report chart` draws it."""
    digest = pictures.digest(pictures.chart())
    assert all(digest in (CHARTS / f"chart_{style}.svg").read_text() for style in pictures.STYLES)
    made = [records.make(case, "cpu", phase, 1.0, "klu", s) for phase in PHASES for case, s in (("a", 8.0), ("b", 0.5))]
    monkeypatch.setattr(records, "read", lambda paths: made)
    assert pictures.chart().sections[0].rows == [("KLU", [{"a": 8.0, "b": 0.5}] * 2)]
    assert pictures.digest(pictures.chart()) != digest
