"""Benchmarks: suites and peers have the same interface, records are complete, pages and pictures show the records."""

import ast
import json
import os
import re
import subprocess
import sys

import pytest

from asv_bench import __main__, peers, processes, records, report, suites
from asv_bench.phases import PHASES
from asv_bench.report import circuits, pictures
from support.asv_bench_package import FOLDER

RESULTS, CHARTS = __main__.RESULTS, __main__.PICTURES
PUBLIC = {"gpusplu", "gpusplu.gallery", "gpusplu.common.timing", "gpusplu.common.stats", "gpusplu.cli.report"}
KEPT = [name for name in suites.NAMES if records.files(name)]


def test_every_suite_is_listed():
    for folder, names in (("suites", suites.REGULAR), ("experiments", suites.EXPERIMENTS)):
        assert {path.stem for path in (FOLDER / folder).glob("*.py")} - {"__init__"} == set(names)
    assert len(suites.REGULAR) <= 10


@pytest.mark.parametrize("name", suites.NAMES)
def test_suite(name):
    suite = suites.named(name)
    assert len(suites.describe(name)) < 120
    assert all(peer in peers.NAMES for peer in suite.PEERS)
    assert all(isinstance(case, str) for case in suite.CASES)
    assert suite.BUDGET >= 0
    assert callable(suite.run)


@pytest.mark.parametrize("name", peers.NAMES)
def test_peer(name):
    peer = peers.named(name)
    assert isinstance(peer.missing(), str)
    method = "measure" if name in peers.SOLVERS else "order" if name in peers.ORDERINGS else "solver"
    assert callable(getattr(peer, "front" if name == "lapack" else method))


def test_best_of_settings():
    """The least of each phase over settings that solve; those that fail or are wrong do not count."""
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
SLOW = {"programs", "memory", "neighbours", "gradients", "tensors", "precision"}  # processes, JAX, torch
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
            assert picture.digest() in (RESULTS / f"{name}_{machine}_{style}.svg").read_text()
    assert len([*RESULTS.glob(f"{name}_*.svg")]) == len(drawn) * len(pictures.STYLES)


def test_every_page_has_records():
    assert {path.stem for path in RESULTS.glob("*.md")} == {*KEPT, "index"}
    assert {*records.FOLDER.iterdir()} == {path for name in KEPT for path in records.files(name)}


def test_the_chart_shows_the_records(monkeypatch):
    """One dot per case of all records; rows only for peers that have records. `report chart` draws it."""
    digest = pictures.chart().digest()
    assert all(digest in (CHARTS / f"chart_{style}.svg").read_text() for style in pictures.STYLES)
    made = [records.make(case, "cpu", phase, 1.0, "klu", s) for phase in PHASES for case, s in (("a", 8.0), ("b", 0.5))]
    monkeypatch.setattr(records, "read", lambda paths: made)
    assert pictures.chart().sections[0].rows == [("KLU", [{"a": 8.0, "b": 0.5}] * 2)]
    assert pictures.chart().digest() != digest


def test_pictures_are_repeatable(tmp_path):
    """The same bytes for the same records: means as text, and no date."""
    picture = report.of_page("gradients", records.files("gradients"))["h200"]
    for name in ("one", "two"):
        pictures.draw(picture, "dark", tmp_path / name)
    drawn = (tmp_path / "one").read_text()
    assert (tmp_path / "two").read_text() == drawn
    assert "date" not in drawn
    assert re.search(r">\d+\.\dx<", drawn)


def test_picture_of_variants():
    """Seconds of the other variants relative to the first, of cases that both have."""
    seconds = {("now", "a"): 4.0, ("captured", "a"): 2.0, ("now", "b"): 4.0, ("captured", "b"): 8.0, ("now", "c"): 1.0}
    made = [records.make(case, "supernodal", "step", s, variant=variant) for (variant, case), s in seconds.items()]
    assert pictures.picture("captured", made).sections[0].rows == [("waited for", [{"a": 2.0, "b": 0.5}])]
    assert pictures.picture("captured", made[1:2]) is None
    assert pictures.picture("streaming", []) is None


def test_means_of_the_processor():
    """By peer and kind, with the least and its case; a dash if a peer has no such phase."""
    seconds = {("a", "cpu", "solve"): 2.0, ("b", "cpu", "solve"): 8.0, ("a", "cpu", "analyze"): None}
    made = [records.make(*name, 1.0, "scipy", there, kind="general") for name, there in seconds.items()]
    made.append(records.make("c", "cpu", "solve", 1.0, "scipy", 3.0, kind="definite"))
    text = report.tables("processor", made)
    assert "| scipy, general | 2 | 4.00 (2.00 a) | - |" in text
    assert "| scipy, definite | 1 | 3.00 (3.00 c) | - |" in text
    assert report.tables("processor", [records.make("a", "cpu", "solve", 1.0)]).startswith("## cpu\n")


def test_rows_come_from_one_commit():
    old, new = ([{"case": case, "commit": commit} for case in "ab"] for commit in "12")
    assert records.one_commit([*old, *new]) == new
    assert records.one_commit([*old, new[0]]) == old
    assert records.one_commit([*old, *new], "1") == old
    assert records.one_commit([*old, {"case": "c"}, *new]) == [*old, {"case": "c"}]
    assert records.one_commit([]) == []


def test_report_of_files(tmp_path):
    made = [records.make("a", "cpu", "solve", 2e-3, "scipy", 8e-3, 1e-16, peer_backward_error=2e-16)]
    path = tmp_path / "h200-2026-01.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in made))
    __main__.main(["report", "processor", "--records", str(path), "--into", str(tmp_path)])
    text = (tmp_path / "processor.md").read_text()
    assert "| a | 2 ms | 8 ms | 4.00 | 1e-16 | 2e-16 |" in text
    assert f"Commit {made[0]['commit']} of {made[0]['date']}. Machine: {records.MACHINES['h200']}." in text
    assert (tmp_path / "processor_h200_dark.svg").exists()


def seconds(step, **more):
    return {"analyze": 0.01, "refactor": step / 2, "step": step, "step_wall": 1.2 * step, "flops": 2e6, **more}


STEPS = {"cudss": 8e-4, "cpu": 7e-4, "cpu_device": 8e-4, "supernodal": 1.3e-4, "glu": 4e-4, "auto": 1.3e-4}
GOOD = {
    "memplus": {**{solver: seconds(step) for solver, step in STEPS.items()}, "auto_host": seconds(2e-4)},
    "add20_seq": {"auto": seconds(1e-4, sequence_error=1e-15), "cudss": seconds(8e-4, sequence_error=1e-3)},
}


def test_targets_that_are_reached():
    text = "\n".join(circuits.summary(GOOD))
    assert "MISSED" not in text
    assert "on the device: 7.02x" in text
    assert "glu beside its published form, refactor: at least 18.50x" in text


@pytest.mark.parametrize(
    ("solver", "values", "line"),
    [
        ("cudss", {"step": 1e-4}, "auto beside cuDSS, refactor + solve on the device"),
        ("cpu", {"step_wall": 1e-4}, "auto_host over the better of cuDSS and cpu"),
        ("cpu_device", {"step_wall": 1e-5}, "auto over the better of cuDSS and cpu_device"),
        ("supernodal", {"step_wall": 1e-4}, "auto within 15% of the best of ours"),
        ("auto", {"step": 1e-3}, "auto beside CKTSO with 16 threads (step,"),
        ("glu", {"refactor": 1e-3}, "glu beside its published form"),
        ("auto", {"step_wall": 2e-4}, "a Newton step of memplus"),
        ("auto", {"sequence_error": 2e-12}, "sequences, worst backward error"),
    ],
)
def test_targets_that_are_missed(solver, values, line):
    results = {"memplus": GOOD["memplus"] | {solver: GOOD["memplus"][solver] | values}}
    (found,) = [text for text in circuits.summary(results) if text.startswith(line)]
    assert "MISSED" in found
