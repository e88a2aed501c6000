"""The command line, run in this process: output files, exit codes, one-line errors."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import gpusplu
from gpusplu import gallery
from gpusplu.cli import calibrate, main
from gpusplu.cli.report import Progress, plain
from gpusplu.common.bars import WIDTH
from gpusplu.cost import calibration
from gpusplu.cost.table import shipped
from support.processes import PYTHON, environment


def failure(capsys, *arguments):
    """Run a command that must fail, and return its one-line message."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.fixture
def system(tmp_path):
    A = gallery.rlc_mesh(6, 5)
    path = tmp_path / "A.mtx"
    scipy.io.mmwrite(path, A, precision=17)
    return A, path


def test_doctor(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert gpusplu.__version__ in out
    assert "FAILED" not in out
    for dtype in ("float32", "float64", "complex64", "complex128"):
        assert f"splu {dtype}" in out
        assert f"cholesky {dtype}" in out
        assert f"ldlt {dtype}" in out


def as_json(capsys, *arguments):
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_results_as_json(capsys):
    found = as_json(capsys, "doctor")
    assert (found["installed"]["gpusplu"], found["engines"]["cpu"]) == (gpusplu.__version__, "available")
    assert all(test["passed"] and test["backward_error"] < 1e-4 for test in found["self_test"])
    found = as_json(capsys, "solve", "poisson:9x8", "--cholesky")
    assert found["backward_error"] < 1e-14 and found["first_entries"] == pytest.approx([1] * 5)
    assert {"analyze", "factor", "solve"} <= found["seconds"].keys() and found["solution"] is None
    assert (found["matrix"]["n"], found["right_hand_side"]) == (72, {"name": "A @ ones", "columns": 1})
    circuit, elasticity = as_json(capsys, "demo", "--quick")["problems"]
    assert (circuit["name"], circuit["count"], elasticity["unknowns"]) == ("circuit", 40, 540)
    total = circuit["factorization"]["scipy"] + 40 * circuit["step"]["scipy"]
    assert circuit["total"]["scipy"] == pytest.approx(total)
    numbers = {"a": np.float64("nan"), "b": np.array([1 + 2j]), "c": np.int32(3)}
    assert plain(numbers) == {"a": None, "b": [[1, 2]], "c": 3}


def test_demo(capsys):
    assert main(["demo", "--quick"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "" and captured.out.count("backward error") == 2 and "Newton step" in captured.out


def test_doctor_reports_a_failed_self_test(capsys, monkeypatch):
    def broken(A, **_):
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(gpusplu, "splu", broken)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert out.count("FAILED RuntimeError: broken on purpose") == 4
    assert out.count("ok     backward error") == 8


def test_explain_takes_what_choices_are_made_by(capsys):
    assert main(["explain", "poisson:9x8", "--cholesky"]) == 0
    assert "72 x 72" in capsys.readouterr().out
    assert main(["explain", "rlc:9x8", "--expected-refactors", "1234", "--ordering", "nd"]) == 0
    out = capsys.readouterr().out
    assert "predicted, with 1,234 refactorizations and solves" in out
    assert "ordering  nd" in out
    assert "steam" in failure(capsys, "explain", "rlc:9x8", "--engine", "steam")
    assert "out of memory: Unable to allocate" in failure(capsys, "explain", "poisson:100000000x100000000")
    assert "another number of sizes" in failure(capsys, "explain", "rlc:9")
    assert "expected_refactors=-1.0" in failure(capsys, "explain", "rlc:9x8", "--expected-refactors", "-1")


def test_explain_as_json(capsys):
    assert main(["explain", "kkt:60x20", "--ldlt", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["name"], found["matrix"]["n"], found["engine"]) == ("kkt:60x20", 80, "cpu")
    assert found["method"] == "ldlt"
    (prediction,) = found["predictions"]
    steps = prediction["refactor"] + prediction["solve"]
    assert prediction["total"] == pytest.approx(prediction["factor"] + found["refactorizations"] * steps)


def test_solve_says_what_it_found(tmp_path, capsys):
    A = sp.csc_array(np.diag([2.0, 4.0, 5.0]))
    sp.save_npz(tmp_path / "A.npz", A)
    np.save(tmp_path / "b.npy", [2.0, 4.0, -10.0])
    assert main(["solve", str(tmp_path / "A.npz"), str(tmp_path / "b.npy")]) == 0
    lines = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["infinity norms"].strip() == "A 5, b 10, x 2, b - A x 0"
    assert lines["x"].strip() == "1, 1, -2"
    assert lines["engine"].strip().startswith("cpu: ")
    assert [name for name in lines if name.startswith("seconds [")]


def test_verbose_goes_to_standard_error(capsys):
    assert main(["solve", "poisson:9x8", "-v"]) == 0
    captured = capsys.readouterr()
    assert "factor took" in captured.err and "took" not in captured.out
    assert main(["solve", "poisson:9x8", "-vv"]) == 0
    assert "solve took" in capsys.readouterr().err
    assert main(["solve", "poisson:9x8"]) == 0
    assert capsys.readouterr().err == ""


def written(path, A):
    """A matrix, or right-hand sides, in a file of the form that its name says."""
    if path.suffix == ".npz":
        sp.save_npz(path, sp.csc_array(A))
    elif path.suffix == ".npy":
        np.save(path, A)
    else:
        scipy.io.mmwrite(path.with_name("whole.mtx"), A, precision=17)
        text = path.with_name("whole.mtx").read_bytes()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return str(path)


@pytest.mark.parametrize(
    ("of_matrix", "of_b", "of_x"),
    [("A.npz", "b.npy", "x.npy"), ("A.mtx", "b.npz", "x.mtx"), ("A.mtx.gz", "b.mtx", "x.npy")],
)
def test_solve_reads_and_writes_files(tmp_path, capsys, of_matrix, of_b, of_x):
    A, b = gallery.poisson(7, 6), np.random.default_rng(0).normal(size=(42, 3))
    arguments = written(tmp_path / of_matrix, A), written(tmp_path / of_b, b), "-o", str(tmp_path / of_x)
    assert main(["solve", *arguments, *(["--cholesky"] if of_x == "x.npy" else [])]) == 0
    out = capsys.readouterr().out
    assert "backward error" in out and "engine" in out
    x = np.load(tmp_path / of_x) if of_x == "x.npy" else scipy.io.mmread(tmp_path / of_x)
    np.testing.assert_allclose(A @ x, b, atol=1e-12)


HEADER = b"%%MatrixMarket matrix coordinate "
GOOD = HEADER + b"real general\n2 2 2\n1 1 1.0\n2 2 3.0\n"


def test_files_that_are_no_matrices(tmp_path, capsys):
    with_nan = gallery.poisson(3, 3)
    with_nan.data[5] = np.nan
    written(tmp_path / "nan.npz", with_nan), written(tmp_path / "wide.npz", np.ones((2, 3)))
    written(tmp_path / "singular.npz", np.diag([1.0, 0.0, 2.0]))
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    (tmp_path / "folder.mtx").mkdir()
    words = {"nan.npz": "entry nan at row", "wide.npz": "not square: 2 x 3", "singular.npz": "singular"}
    words |= {"A.txt": "extension", "missing.mtx": "no such file", "folder.mtx": "is a folder"}
    words["other.npz"] = "not a readable"
    for name, content in {
        "garbage.npz": b"not a zip file",
        "garbage.mtx": b"hello\n",
        "short.mtx": HEADER + b"real general\n2 2 3\n1 1 1.0\n",
        "outside.mtx": HEADER + b"real general\n2 2 1\n3 1 1.0\n",
        "billions_of_rows.mtx": HEADER + b"real general\n3000000000 3000000000 1\n1 1 1.0\n",
        "two_billion_rows.mtx": HEADER + b"real general\n2100000000 2100000000 1\n1 1 1.0\n",
        "billions_of_entries.mtx": HEADER + b"real general\n30 30 3000000000\n1 1 1.0\n",
        "large_array.mtx": b"%%MatrixMarket matrix array real general\n3000000000 3000000000\n1.0\n",
        "large_integer_and_nul.mtx": HEADER + b"integer general\n12 12 12\n" + b"1 1 2147483648\n" * 11 + b"12 12 \0\n",
        "binary.mtx": b"\0\xff\xfe",
        "empty.mtx": b"",
        "garbage.mtx.gz": b"\x1f\x8b nothing",
        "A.txt": b"1 2\n",
    }.items():
        (tmp_path / name).write_bytes(content)
        words.setdefault(name, "")
    for k, (name, word) in enumerate(words.items()):
        command = "solve" if k % 2 or name == "singular.npz" else "explain"  # both read files in the same way
        message = failure(capsys, command, str(tmp_path / name))
        assert message.startswith(f"gpusplu {command}: ") and name in message and word in message


def test_bad_arguments_of_solve(tmp_path, capsys):
    A = written(tmp_path / "A.npz", gallery.poisson(5, 4))
    for b, word in (
        (np.ones(3), "the right-hand side is 3"),
        (np.full(20, np.inf), "not finite"),
        (np.array(["a"] * 20), "not numbers"),
    ):
        assert word in failure(capsys, "solve", A, written(tmp_path / "b.npy", b))
    for word, *arguments in (
        ("extension", "-o", str(tmp_path / "x.mtx.gz")),
        ("no such folder", "-o", str(tmp_path / "none" / "x.npy")),
        ("cannot be written", "-o", str(tmp_path / f"{300 * 'x'}.npy")),
        ("engine", "--engine", "steam"),
        ("ordering", "--ordering", "random"),
    ):
        assert word in failure(capsys, "solve", A, *arguments)
    assert "definite" in failure(capsys, "solve", written(tmp_path / "K.npz", np.diag([1.0, -2.0])), "--cholesky")


def test_explain_of_what_no_values_make_regular(tmp_path, capsys):
    sp.save_npz(tmp_path / "A.npz", sp.csc_array(np.diag([1.0, 0.0, 2.0])))
    assert main(["explain", str(tmp_path / "A.npz")]) == 0
    out = capsys.readouterr().out
    assert "structural rank 2\nfactor    none: the pattern alone makes the matrix exactly singular\n" in out
    assert "predicted" not in out and "ordering" not in out  # of what is not done nothing is said
    assert main(["explain", str(tmp_path / "A.npz"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["matrix"]["structural_rank"] == 2 and found["engine"] is None
    assert repr(gpusplu.analyze(sp.csc_array(np.diag([1.0, 0.0, 2.0])))).endswith(" entries, structurally singular>")


def test_usage(capsys, monkeypatch):
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "solve a linear system" in captured.err
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert gpusplu.__version__ in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main(["solve"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith("usage: gpusplu solve ")
    for script, name in (("/a/gpusplu/__main__.py", "python -m gpusplu"), ("/bin/gpusplu", "gpusplu")):
        monkeypatch.setattr(sys, "argv", [script, "explain", "-h"])
        with pytest.raises(SystemExit):
            main()
        out = capsys.readouterr().out
        assert out.startswith(f"usage: {name} explain [-h]") and "poisson" in out


def test_progress_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Progress("work", 2) as progress:
        progress.advance("half")
        progress.advance()
    err = capsys.readouterr().err
    assert "1/2 half" in err
    assert "[" + "#" * WIDTH + "] 2/2" in err
    assert err.endswith("\r\x1b[K")


@pytest.mark.parametrize("of_b", [None, "f4", "f8", "i8", "c16"])
def test_solve_in_the_precision_of_matrix_and_right_hand_side(tmp_path, capsys, of_b):
    A = gallery.poisson(5, 4).astype(np.float32)
    sp.save_npz(tmp_path / "A.npz", A)
    arguments = [str(tmp_path / "A.npz")]
    if of_b is not None:
        np.save(tmp_path / "b.npy", np.arange(20).astype(of_b))
        arguments.append(str(tmp_path / "b.npy"))
    assert main(["solve", *arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["matrix"]["dtype"] == ("float32" if of_b in (None, "f4") else "float64")
    assert found["backward_error"] < (1e-6 if of_b in (None, "f4") else 1e-14)


def test_solve_for_no_columns_and_in_extended_precision(tmp_path, capsys):
    A, b = gallery.poisson(5, 4), tmp_path / "b.npy"
    sp.save_npz(tmp_path / "A.npz", A)
    np.save(b, np.ones((20, 0)))
    assert main(["solve", str(tmp_path / "A.npz"), str(b)]) == 0
    capsys.readouterr()
    np.save(b, np.ones(20, np.longdouble))
    sp.save_npz(tmp_path / "long.npz", A.astype(np.longdouble))
    for arguments in (["A.npz", str(b)], ["long.npz"]):
        assert main(["solve", str(tmp_path / arguments[0]), *arguments[1:]]) == 2
        assert "cannot upcast" in capsys.readouterr().err


def test_bench(tmp_path, capsys, own_cache):
    path = tmp_path / "A.mtx"
    scipy.io.mmwrite(path, gallery.rlc_mesh(6, 5), precision=17)
    assert main(["bench", str(path), "poisson:9x8", "--budget", "0.002", "--engine", "cpu"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("A.mtx: ")
    assert "poisson:9x8: 72 x 72" in out
    rows = [line.split() for line in out.splitlines() if line.startswith(("cpu", "SciPy"))]
    assert [row[0] for row in rows] == ["cpu", "SciPy"] * 2
    heading = next(line for line in out.splitlines() if "predicted" in line)
    assert re.findall(r"\S+ \[[mu]?s\]|x SciPy|predicted / measured|backward error", heading)[-1] == "backward error"
    assert "x SciPy" in heading and "predicted / measured" in heading and " ms" not in heading
    assert "its step is splu and solve" in out
    assert all(float(row[-1]) < 1e-14 for row in rows)
    assert out.count("auto: cpu, engine='auto' and") == 2


def test_other_arguments_of_bench(capsys, own_cache):
    assert main(["bench", "elast:3x3x3", "--cholesky", "--no-scipy", "--budget", "0.001", "--engine", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "definite" in out and "SciPy  " not in out
    for message, *arguments in (
        ("is not family:AxB", "poisson:x"),
        ("nowhere.mtx: no such file", "nowhere.mtx"),
        ("--engine abacus: not among auto,cpu", "poisson:9x9", "--engine", "abacus"),
        ("--budget 0.0: must be positive", "poisson:9x9", "--budget", "0"),
    ):
        assert message in failure(capsys, "bench", *arguments)


def test_bench_says_why_an_engine_does_not_run(capsys, own_cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert main(["bench", "poisson:9x8", "--no-scipy", "--budget", "0.001", "--engine", "cpu,supernodal"]) == 0
    assert "supernodal: EngineUnavailableError: GPU engines need CuPy" in capsys.readouterr().out
    assert "--on-device: " in failure(capsys, "bench", "poisson:9x8", "--on-device")


def test_bench_of_matrices_without_a_factor(tmp_path, capsys, own_cache):
    sp.save_npz(tmp_path / "singular.npz", sp.csc_array(np.diag([1.0, 0.0, 2.0])))
    singular = str(tmp_path / "singular.npz")
    for more in ([], ["poisson:9x8"], ["--json"]):  # a script that goes by exit codes sees it
        assert main(["bench", singular, *more, "--budget", "0.001", "--engine", "cpu"]) == 2
        out, err = capsys.readouterr()
        assert err == "gpusplu bench: no engine has factored singular.npz\n"
        assert "Error: Factor is exactly singular" in out
        assert ("SciPy  " in out) == ("x SciPy" in out) == bool(more and "poisson" in more[0])
    assert "differ" in failure(capsys, "bench", "rlc:6x6", "--cholesky", "--budget", "0.001")


def test_bench_as_json(capsys, own_cache):
    assert main(["bench", "poisson:9x8", "--budget", "0.001", "--engine", "cpu,auto", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["matrices"]
    assert (found["n"], found["definite"], found["auto"]["engine"]) == (72, False, "cpu")
    assert [row["engine"] for row in found["engines"]] == ["cpu", "auto"]
    for row in found["engines"]:
        assert row["x_scipy"] == pytest.approx(found["scipy"]["step"] / row["step"])
        assert row["predicted_over_measured"] == pytest.approx(row["predicted_step"] / row["step"])
        assert row["backward_error"] < 1e-14
    assert "--calibrate takes no matrix" in failure(capsys, "bench", "--calibrate", "--json")


@pytest.mark.thorough
def test_bench_calibrates(capsys, own_cache, monkeypatch):
    monkeypatch.setattr(calibrate, "no_device", lambda: "there is no CUDA device")
    cases = (("rlc:8x8", False), ("convdiff:4", False), ("poisson:9x9", True))
    monkeypatch.setattr(calibrate, "PROCESSOR_CASES", cases)
    assert main(["bench", "--calibrate", "--budget", "0.004"]) == 0
    assert "no device: there is no CUDA device" in capsys.readouterr().out
    fitted = calibration.costs_of()
    terms = {f"cpu.{method}.{phase}" for method in ("column", "front") for phase in ("factor", "refactor", "solve")}
    terms |= {"cpu.supernodes", "cpu.dissection", "cpu.tasks", "cpu.threads", "lockstep.merging", "supernodal.lockstep"}
    assert {term for term in fitted if fitted[term] != shipped()[term]} == terms
    assert len(list(own_cache.iterdir())) == 1


def call(*arguments, stdout=subprocess.PIPE, folders=()):
    command = [*PYTHON, "-m", "gpusplu", *arguments]
    options = {"env": environment(*folders), "text": True, "errors": "surrogateescape"}
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, **options)


def test_a_reader_that_crashes(tmp_path, monkeypatch, capsys):
    from gpusplu import cli
    from gpusplu.cli import files

    (tmp_path / "reader.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    (tmp_path / "good.mtx").write_bytes(GOOD)
    monkeypatch.setattr(files, "__file__", str(tmp_path / "files.py"))
    assert cli.main(["solve", str(tmp_path / "good.mtx")]) == 2
    assert "SciPy's reader crashed on it (signal 11)" in capsys.readouterr().err


@pytest.mark.parametrize("name", [b"na\xffme.mtx", pytest.param("größe.mtx".encode(), marks=pytest.mark.thorough)])
def test_names_of_files_are_any_bytes(name, tmp_path):
    file, solution = tmp_path / os.fsdecode(name), tmp_path / os.fsdecode(b"x\xfe.mtx")
    file.write_bytes(GOOD)
    run = call("solve", str(file), "-o", str(solution))
    assert run.returncode == 0, run.stderr
    assert solution.stat().st_size > 0
    assert call("explain", str(file)).returncode == 0
    missing = call("solve", str(tmp_path / os.fsdecode(b"no\xff.mtx")))
    assert missing.returncode == 2
    assert missing.stderr.endswith("no\\udcff.mtx: no such file\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_an_output_that_is_full(tmp_path):
    (tmp_path / "good.mtx").write_bytes(GOOD)
    with open("/dev/full", "w") as full:
        run = call("explain", str(tmp_path / "good.mtx"), stdout=full)
    assert run.returncode == 2
    assert run.stderr == "gpusplu explain: cannot write the output: [Errno 28] No space left on device\n"


def test_outputs_that_nobody_reads():
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        run = call("explain", "poisson:4x4", stdout=closed)
    assert run.returncode == 141 and not run.stderr
    command = ["sh", "-c", 'exec "$@" >&-', "sh", *PYTHON, "-m", "gpusplu", "explain", "poisson:4x4"]
    run = subprocess.run(command, env=environment(), text=True, capture_output=True)
    assert run.returncode == 2
    assert run.stderr == "gpusplu explain: cannot write the output: standard output is closed\n"


#: Ctrl-C when a module is looked for, before anything of ours is imported.
PRESSED = """
import signal, sys

class Pressed:
    def find_spec(name, path=None, target=None):
        if name == "MODULE":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Pressed)
"""


@pytest.mark.parametrize("module", ["numpy", "gpusplu.cli", "scipy.sparse", "gpusplu.cli.solve"])
def test_ctrl_c_while_it_is_imported(module, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(PRESSED.replace("MODULE", module))
    run = call("--version", folders=[tmp_path])
    assert run.returncode == 130
    assert not run.stderr
    assert not run.stdout
