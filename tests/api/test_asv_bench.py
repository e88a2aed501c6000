"""Benchmarks: every suite and peer has the same few names, records are whole, pages are what records say."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from asv_bench import __main__, peers, processes, records, report, suites
from asv_bench.phases import PHASES
from asv_bench.report import chart
from support.asv_bench_package import FOLDER

TESTS = FOLDER.parent / "tests"
RESULTS = FOLDER.parent / "docs" / "performance" / "results"
SCHEMA = ["case", "engine", "phase", "ours_s", "peer", "peer_s", "backward_error", "commit", "date"]
PUBLIC = {"gpusplu", "gpusplu.gallery", "gpusplu.common.timing", "gpusplu.cli.report"}


def modules(folder):
    return {path.stem for path in (FOLDER / folder).glob("*.py")} - {"__init__"}


def test_nothing_is_unlisted():
    assert modules("suites") == set(suites.NAMES)
    assert modules("peers") == {*peers.NAMES, "suitesparse"}


@pytest.mark.parametrize("name", suites.NAMES)
def test_suite(name):
    suite = suites.named(name)
    assert len(suites.describe(name)) < 120
    assert all(peer in peers.NAMES for peer in suite.PEERS)
    assert all(isinstance(case, str) for case in suite.CASES)
    assert suite.BUDGET >= 0
    assert all(map(callable, (suite.add_arguments, suite.run)))


@pytest.mark.parametrize("name", peers.NAMES)
def test_peer(name):
    peer = peers.named(name)
    assert isinstance(peer.missing(), str)
    if name in peers.SOLVERS:
        assert set(peer.KINDS) <= {False, True}
        assert peer.MOST_FLOPS > 0
        assert callable(peer.measure)
    elif name in peers.DIFFERENTIABLE:
        assert isinstance(peer.BATCHES, bool)
        assert callable(peer.solver)
    else:
        assert callable(peer.order if name in peers.ORDERINGS else peer.front)


def test_best_of_settings():
    """The least of each phase, of settings that solve; what fails or is wrong does not count."""
    slow, wrong = dict.fromkeys(PHASES, 2.0), dict.fromkeys(PHASES, 0.1)
    settings = {
        "slow": slow | {"solve": 1.0, "backward_error": 1e-17, "entries": 7},
        "fast": dict.fromkeys(PHASES, 1.5) | {"backward_error": 1e-12, "entries": 8},
        "wrong": wrong | {"backward_error": 1e-3},
        "nowhere": wrong | {"backward_error": float("nan")},
    }
    variants = [(name,) for name in (*settings, "missing")]
    best = peers.best_of(settings.__getitem__, variants)
    assert best == dict.fromkeys(PHASES, 1.5) | {"solve": 1.0, "backward_error": 1e-12, "entries": 7}
    with pytest.raises(RuntimeError, match="does not solve; does not solve; KeyError"):
        peers.best_of(settings.__getitem__, variants[2:])


def sources():
    """Every file of the package and what it says."""
    return [(path, ast.parse(path.read_text())) for path in FOLDER.rglob("*.py")]


def test_paths_are_left_alone():
    """No file looks at where modules are searched."""
    found = [
        path.name
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "path" and getattr(node.value, "id", "") == "sys"
    ]
    assert found == []


def test_private_attributes_are_left_alone():
    """No file uses one of an object that is not its own."""
    found = [
        f"{path.relative_to(FOLDER)}: {node.attr}"
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        if getattr(node.value, "id", "") != "self"
    ]
    assert found == []


def test_only_internals_knows_the_inside():
    """Other files import public modules of gpusplu."""
    found = []
    for path, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and not node.level and node.module.split(".")[0] == "gpusplu":
                names = [f"gpusplu.{alias.name}" for alias in node.names] if node.module == "gpusplu" else [node.module]
                found += [(path.parent.name, name) for name in names if name not in PUBLIC]
    assert {name for name, _ in found} == {"internals"}


def command(*words, path=()):
    """What the command prints, in a process of its own."""
    environment = processes.environment()
    environment["PYTHONPATH"] = os.pathsep.join([environment["PYTHONPATH"], *map(str, path)])
    made = subprocess.run(
        [sys.executable, "-P", "-m", "asv_bench", *words], env=environment, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_list():
    text = command("list")
    assert all(f"  {name} " in text for name in (*suites.NAMES, *peers.NAMES))


def check(record):
    """A record has all keys, of their types."""
    assert list(record)[: len(SCHEMA)] == SCHEMA
    for key in ("case", "engine", "phase", "peer", "commit", "date"):
        assert isinstance(record[key], str)
        assert record[key]
    for key in ("ours_s", "peer_s", "backward_error"):
        assert record[key] is None or record[key] >= 0


RUNS = {
    "processor": ["--cases", "poisson:5x5", "rlc:5x5", "--peer", "scipy"],
    "ldlt": ["--cases", "kkt:40x20x1", "--peer", "own_lu", "--budget", "0.01"],
    "one_shot": ["--cases", "rlc:5x5", "--repeat", "1"],
    "analysis": ["--cases", "rlc:5x5", "--threads", "1", "--repeat", "1"],
    "methods": ["--cases", "rlc:5x5", "power:6x6", "--repeat", "1", "--fit"],
    "dense": ["--cases", "4x8", "--peer", "none"],
    "programs": ["--cases", "odes.bdf", "odes.radau", "--scale", "0.06", "--repeat", "1"],
    "gradients": ["--cases", "rlc:5x5", "--systems", "2", "--repeat", "1", "--peer", "jax_spsolve"],
    "schur": ["--cases", "poisson:6x6", "--unknowns", "6", "--peer", "none", "--budget", "0.001"],
    "inverse": ["--cases", "poisson:6x6", "kkt:40x20x1", "rlc:5x5", "--budget", "0.001"],
    "updates": ["--cases", "poisson:6x6", "--ranks", "2", "--peer", "none", "--repeat", "1"],
    "tensors": ["--cases", "rlc:5x5", "--systems", "2", "--repeat", "1", "--peer", "none"],
}


@pytest.mark.filterwarnings("ignore:Sparse (CSR tensor support|invariant checks)")
@pytest.mark.parametrize("suite", RUNS)
def test_run(suite, tmp_path, capsys):
    if suite == "gradients":
        pytest.importorskip("jax.numpy", reason="needs JAX: pip install gpusplu[jax]")
    if suite == "tensors":
        pytest.importorskip("torch", reason="torch is not installed")
    out = tmp_path / "records.jsonl"
    __main__.main(["run", suite, *RUNS[suite], "--out", str(out)])
    made = records.read([out])
    assert {record["case"] for record in made} <= set(RUNS[suite])
    for record in made:
        check(record)
    assert any(record["ours_s"] > 0 for record in made)
    assert f"| {made[0]['case']}" in capsys.readouterr().out


def test_peers_seconds_are_beside_ours(tmp_path, capsys):
    out = tmp_path / "records.jsonl"
    __main__.main(["run", "processor", *RUNS["processor"], "--out", str(out)])
    made = {(record["case"], record["phase"]): record for record in records.read([out])}
    for case in ("poisson:5x5", "rlc:5x5"):
        for phase in ("factor", "refactor", "solve"):
            assert made[case, phase]["peer"] == "scipy"
            assert made[case, phase]["peer_s"] > 0
        assert made[case, "solve"]["backward_error"] < 1e-14


def test_circuits_without_a_device(tmp_path):
    """A process of its own measures one case after another."""
    out = tmp_path / "records.jsonl"
    options = ["--engines", "cpu,auto_host", "--peer", "none", "--budget", "0.001", "--out", str(out)]
    text = command("run", "circuits", "--cases", "rlc:5x5", "rlc:6x6", *options)
    assert "| rlc:6x6 | cpu |" in text
    made = records.read([out])
    assert {(record["case"], record["engine"]) for record in made} == {
        (case, engine) for case in ("rlc:5x5", "rlc:6x6") for engine in ("cpu", "auto_host")
    }
    for record in made:
        check(record)


@pytest.mark.parametrize("words", [["memory"], ["circuits", "--engines", "cpu", "--peer", "none"]])
def test_a_failure_ends_one_case(words):
    text = command("run", *words, "--cases", "no_such_matrix", "rlc:5x5")
    assert "| rlc:5x5 |" in text
    assert "no_such_matrix" not in text


EMULATED = {
    "glu": ["--cases", "rlc:5x5", "--variants", "choice", "cluster"],
    "sflu": ["--cases", "rlc:5x5"],
    "crisscross": ["--cases", "rlc:5x5", "--sizes", "0,8", "--orderings", "auto"],
    "right_hand_sides": ["--cases", "poisson:4x4x4", "--columns", "1,3"],
    "host_values": ["--cases", "rlc:5x5"],
    "captured": ["--cases", "rlc:5x5", "--engines", "supernodal,sflu", "--systems", "3"],
    "streaming": ["--cases", "poisson:9x9x9", "--shares", "1", "0.6"],
    "moves": ["--cases", "rlc:5x5", "--uses", "1,3", "--budget", "0.001", "--longest", "1e9"],
    "supernodal": ["--cases", "convdiff:4", "--peer", "none", "--budget", "0.001"],
    "batches": ["--cases", "rlc:5x5", "--systems", "3", "--peer", "none"],
    "sanitize": ["--cases", "rlc:16x16", "--scalars", "d", "--engines", "sflu", "--apart"],
}


@pytest.mark.parametrize("suite", EMULATED)
def test_rehearsal(suite, tmp_path):
    """What needs a device, in the emulator."""
    out = tmp_path / "records.jsonl"
    command("run", suite, *EMULATED[suite], "--emulated", "--out", str(out), path=[TESTS])
    made = records.read([out])
    assert {record["case"] for record in made} == {EMULATED[suite][1]}
    for record in made:
        check(record)
        assert (record["backward_error"] or 0) < 1e-12


KEPT = [name for name in suites.NAMES if records.files(name)]


@pytest.mark.parametrize("name", [*KEPT, "index"])
def test_pages_are_what_records_say(name):
    """`python -m asv_bench report` makes them anew."""
    made = report.index(KEPT) if name == "index" else report.page(name, records.files(name))
    assert (RESULTS / f"{name}.md").read_text() == made
    pictures = {} if name == "index" else report.drawn(name, records.files(name))
    assert {path.name: path.read_text() for path in RESULTS.glob(f"{name}_*.svg")} == pictures


def test_every_page_has_records():
    assert {path.stem for path in RESULTS.glob("*.md")} == {*KEPT, "index"}
    assert {path.parent.name for path in (FOLDER / "records").rglob("*.jsonl")} == set(KEPT)
    assert all(
        sum(map(len, records.by_machine(records.files(name)).values())) == len(records.files(name)) for name in KEPT
    )


@pytest.mark.parametrize("style", chart.STYLES)
def test_the_chart_is_what_records_say(style):
    """`python -m asv_bench report chart` makes it anew."""
    assert (__main__.PICTURES / f"chart_{style}.svg").read_text() == chart.chart(style)


def test_dots_and_figures_of_the_chart(monkeypatch):
    """A dot a case, those that lose in another colour, and their geometric mean; no row for who has no records."""
    phases, there = [phase for phase, _ in chart.SECTIONS[0][1]], {"a": 8.0, "b": 0.5}
    made = [records.make(case, "cpu", phase, 1.0, "klu", there[case]) for phase in phases for case in there]
    monkeypatch.setattr(records, "read", lambda paths: made)
    drawn = chart.chart("light")
    assert drawn.count("<circle") == len(made)
    assert drawn.count(chart.STYLES["light"]["slower"]) == len(phases)
    assert drawn.count(">2.0x<") == len(phases)
    assert ">KLU<" in drawn and ">cuDSS<" not in drawn


def test_means_of_the_processor():
    """By peer and kind, with the least and its case; what a peer does not have is a dash."""
    seconds = {("a", "cpu", "solve"): 2.0, ("b", "cpu", "solve"): 8.0, ("a", "cpu", "analyze"): None}
    made = [records.make(*name, 1.0, "scipy", there, kind="general") for name, there in seconds.items()]
    made.append(records.make("c", "cpu", "solve", 1.0, "scipy", 3.0, kind="definite"))
    text = report.tables("processor", made)
    assert "| scipy, general | 2 | 4.00 (2.00 a) | - |" in text
    assert "| scipy, definite | 1 | 3.00 (3.00 c) | - |" in text
    alone = [records.make("a", "cpu", "solve", 1.0)]
    assert report.tables("processor", alone).startswith("## cpu\n")


def test_rows_come_from_one_commit():
    def record(case, commit):
        return {"case": case, "commit": commit}

    old, new = [record("a", "1"), record("b", "1")], [record("a", "2"), record("b", "2")]
    assert records.one_commit([*old, *new]) == new
    assert records.one_commit([*old, new[0]]) == old
    assert records.one_commit([*old, *new], "1") == old
    assert records.one_commit([*old, {"case": "c"}, *new]) == [*old, {"case": "c"}]
    assert records.one_commit([]) == []


def test_report_of_files(tmp_path, capsys):
    made = [records.make("a", "cpu", "solve", 2e-3, "scipy", 8e-3, 1e-16, peer_backward_error=2e-16)]
    path = tmp_path / "h200-2026-01.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in made))
    __main__.main(["report", "processor", "--records", str(path), "--into", str(tmp_path)])
    text = Path(tmp_path / "processor.md").read_text()
    assert "| a | 2 ms | 8 ms | 4.00 | 1e-16 | 2e-16 |" in text
    assert f"Commit {made[0]['commit']} of {made[0]['date']}. Machine: {records.MACHINES['h200']}." in text


def test_dots_of_a_picture_of_variants():
    """Dots are the other variants' seconds over those of the first, of cases that both have."""
    seconds = {("now", "a"): 4.0, ("captured", "a"): 2.0, ("now", "b"): 4.0, ("captured", "b"): 8.0, ("now", "c"): 1.0}
    made = [records.make(case, "supernodal", "step", s, variant=variant) for (variant, case), s in seconds.items()]
    drawn = report.pictures.picture("captured", made, "dark")
    assert drawn.count("<circle") == 2 and "a: 2.00" in drawn and "b: 0.50" in drawn
    assert ">1.0x<" in drawn and ">waited for<" in drawn
    assert report.pictures.picture("captured", made[1:2], "dark") == ""
    assert report.pictures.picture("streaming", [], "dark") == ""
