"""The command line, run in this process: output files, exit codes, one-line errors."""

import gzip
import json
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import gpusplu
from gpusplu import gallery
from gpusplu.cli import main
from gpusplu.cli.report import Progress, plain, table
from gpusplu.common.bars import WIDTH
from gpusplu.common.stats import duration as seconds
from gpusplu.common.timing import backward_error
from support.command_line import failure


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


def test_doctor_as_json(capsys):
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["installed"]["gpusplu"] == gpusplu.__version__
    assert found["engines"]["cpu"] == "available"
    assert all(test["passed"] and test["backward_error"] < 1e-4 for test in found["self_test"])


def test_doctor_reports_a_failed_self_test(capsys, monkeypatch):
    def broken(A, **_):
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(gpusplu, "splu", broken)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert out.count("FAILED RuntimeError: broken on purpose") == 4
    assert out.count("ok     backward error") == 8


@pytest.mark.parametrize("flag", [[], ["--cholesky"]])
def test_explain(tmp_path, capsys, flag):
    A = gallery.poisson(9, 8)
    sp.save_npz(tmp_path / "A.npz", A)
    assert main(["explain", str(tmp_path / "A.npz"), *flag]) == 0
    assert "72 x 72" in capsys.readouterr().out


def test_explain_takes_what_choices_are_made_by(capsys):
    assert main(["explain", "rlc:9x8", "--expected-refactors", "1234", "--ordering", "nd"]) == 0
    out = capsys.readouterr().out
    assert "predicted, with 1,234 refactorizations and solves" in out
    assert "ordering  nd" in out
    assert "steam" in failure(capsys, "explain", "rlc:9x8", "--engine", "steam")
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


def test_solve_as_json(capsys):
    assert main(["solve", "poisson:9x8", "--cholesky", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["backward_error"] < 1e-14
    assert found["first_entries"] == pytest.approx([1] * 5)
    assert {"analyze", "factor", "solve"} <= found["seconds"].keys()
    assert (found["matrix"]["n"], found["right_hand_side"], found["solution"]) == (
        72,
        {"name": "A @ ones", "columns": 1},
        None,
    )


def test_numbers_that_json_has_not():
    assert plain({"a": np.float64("nan"), "b": np.array([1 + 2j]), "c": np.int32(3)}) == {
        "a": None,
        "b": [[1, 2]],
        "c": 3,
    }


def test_verbose_goes_to_standard_error(capsys):
    assert main(["solve", "poisson:9x8", "-v"]) == 0
    captured = capsys.readouterr()
    assert "factor took" in captured.err and "took" not in captured.out
    assert main(["solve", "poisson:9x8", "-vv"]) == 0
    assert "solve took" in capsys.readouterr().err
    assert main(["solve", "poisson:9x8"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("extension", [".npy", ".mtx"])
def test_solve_writes_the_solution(system, tmp_path, capsys, extension):
    _, path = system
    target = tmp_path / f"x{extension}"
    assert main(["solve", str(path), "-o", str(target)]) == 0
    out = capsys.readouterr().out
    assert "backward error" in out
    assert "engine" in out
    x = np.load(target) if extension == ".npy" else scipy.io.mmread(target).ravel()
    np.testing.assert_allclose(x, 1, rtol=1e-10)


@pytest.mark.parametrize("flag", [[], ["--cholesky"]])
@pytest.mark.parametrize("form", ["npz", "mtx.gz"])
def test_solve_reads_other_forms(tmp_path, form, flag):
    A = gallery.poisson(7, 6)
    path = tmp_path / f"A.{form}"
    if form == "npz":
        sp.save_npz(path, A)
    else:
        scipy.io.mmwrite(tmp_path / "A.mtx", A)
        path.write_bytes(gzip.compress((tmp_path / "A.mtx").read_bytes()))
    b = np.random.default_rng(0).normal(size=(42, 3))
    scipy.io.mmwrite(tmp_path / "b.mtx", b, precision=17)
    assert main(["solve", str(path), str(tmp_path / "b.mtx"), "-o", str(tmp_path / "x.npy"), *flag]) == 0
    np.testing.assert_allclose(A @ np.load(tmp_path / "x.npy"), b, atol=1e-12)


def test_sparse_right_hand_side(system, tmp_path):
    A, path = system
    b = np.zeros(A.shape[0])
    b[3] = 1.0
    sp.save_npz(tmp_path / "b.npz", sp.csc_array(b[:, None]))
    assert main(["solve", str(path), str(tmp_path / "b.npz"), "-o", str(tmp_path / "x.npy")]) == 0
    x = np.load(tmp_path / "x.npy")
    assert x.shape == b.shape
    assert backward_error(A, x, b) < 1e-14


def bad_files(folder):
    """Name of a bad matrix file, and a word of its message."""
    with_nan = gallery.poisson(3, 3)
    with_nan.data[5] = np.nan
    sp.save_npz(folder / "nan.npz", with_nan)
    sp.save_npz(folder / "wide.npz", sp.csc_array(np.ones((2, 3))))
    sp.save_npz(folder / "singular.npz", sp.csc_array(np.diag([1.0, 0.0, 2.0])))
    np.savez(folder / "other.npz", a=np.ones(3))
    (folder / "garbage.npz").write_bytes(b"not a zip file")
    (folder / "garbage.mtx").write_text("hello\n")
    (folder / "short.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1.0\n")
    (folder / "outside.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1.0\n")
    (folder / "empty.mtx").write_text("")
    (folder / "garbage.mtx.gz").write_bytes(b"\x1f\x8b nothing")
    (folder / "A.txt").write_text("1 2\n")
    (folder / "folder.mtx").mkdir()
    return {
        "nan.npz": "entry nan at row",
        "wide.npz": "not square: 2 x 3",
        "singular.npz": "singular",
        "other.npz": "not a readable",
        "garbage.npz": "not a readable",
        "garbage.mtx": "not a readable",
        "short.mtx": "not a readable",
        "outside.mtx": "not a readable",
        "empty.mtx": "not a readable",
        "garbage.mtx.gz": "not a readable",
        "A.txt": "extension",
        "missing.mtx": "no such file",
        "folder.mtx": "is a folder",
    }


def test_bad_matrices(tmp_path, capsys):
    for name, word in bad_files(tmp_path).items():
        message = failure(capsys, "solve", str(tmp_path / name))
        assert name in message
        assert word in message
        if name != "singular.npz":
            assert word in failure(capsys, "explain", str(tmp_path / name))


def test_explain_of_what_no_values_make_regular(tmp_path, capsys):
    sp.save_npz(tmp_path / "A.npz", sp.csc_array(np.diag([1.0, 0.0, 2.0])))
    assert main(["explain", str(tmp_path / "A.npz")]) == 0
    out = capsys.readouterr().out
    assert "structural rank 2\nfactor    none: by its pattern alone the matrix is exactly singular\n" in out
    assert "predicted" not in out and "ordering" not in out  # of what is not done nothing is said
    assert main(["explain", str(tmp_path / "A.npz"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["matrix"]["structural_rank"] == 2 and found["engine"] is None
    assert repr(gpusplu.analyze(sp.csc_array(np.diag([1.0, 0.0, 2.0])))).endswith(" entries, structurally singular>")


def test_bad_right_hand_sides(system, tmp_path, capsys):
    path = str(system[1])
    for b, word in (
        (np.ones(3), "the right-hand side is 3"),
        (np.full(system[0].shape[0], np.inf), "not finite"),
        (np.array(["a"] * system[0].shape[0]), "not numbers"),
    ):
        np.save(tmp_path / "b.npy", b)
        assert word in failure(capsys, "solve", path, str(tmp_path / "b.npy"))


def test_bad_targets_and_options(system, tmp_path, capsys):
    path = str(system[1])
    assert "extension" in failure(capsys, "solve", path, "-o", str(tmp_path / "x.mtx.gz"))
    assert "no such folder" in failure(capsys, "solve", path, "-o", str(tmp_path / "none" / "x.npy"))
    assert "engine" in failure(capsys, "solve", path, "--engine", "steam")
    assert "ordering" in failure(capsys, "solve", path, "--ordering", "random")


def test_cholesky_of_an_indefinite_matrix(tmp_path, capsys):
    sp.save_npz(tmp_path / "A.npz", sp.csc_array(np.diag([1.0, -2.0, 3.0])))
    assert "not positive definite" in failure(capsys, "solve", str(tmp_path / "A.npz"), "--cholesky")


def test_usage(capsys):
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


@pytest.mark.parametrize(
    ("script", "name"), [("/a/gpusplu/__main__.py", "python -m gpusplu"), ("/bin/gpusplu", "gpusplu")]
)
def test_usage_has_the_name_that_was_called(capsys, monkeypatch, script, name):
    monkeypatch.setattr(sys, "argv", [script, "explain", "-h"])
    with pytest.raises(SystemExit):
        main()
    out = capsys.readouterr().out
    assert out.startswith(f"usage: {name} explain [-h]")
    assert "poisson" in out


def test_demo(capsys):
    assert main(["demo", "--quick"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.count("backward error") == 2
    assert "Newton step" in captured.out


def test_demo_as_json(capsys):
    assert main(["demo", "--quick", "--json"]) == 0
    circuit, elasticity = json.loads(capsys.readouterr().out)["problems"]
    assert (circuit["name"], circuit["count"], elasticity["unknowns"]) == ("circuit", 40, 540)
    total = circuit["factorization"]["scipy"] + 40 * circuit["step"]["scipy"]
    assert circuit["total"]["scipy"] == pytest.approx(total)


def test_progress_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Progress("work", 2) as progress:
        progress.advance("half")
        progress.advance()
    err = capsys.readouterr().err
    assert "1/2 half" in err
    assert "[" + "#" * WIDTH + "] 2/2" in err
    assert err.endswith("\r\x1b[K")


def test_report():
    assert [seconds(t) for t in (12.34, 0.01234, 1.234e-6)] == ["12.3 s", "12.3 ms", "1.23 us"]
    assert table(("", "b"), [["row", "10"], ["x", "9"]]).splitlines() == ["      b", "---  --", "row  10", "x     9"]
    A, x = sp.csc_array(np.diag([1.0, 2.0])), np.array([1.0, 1.0])
    assert backward_error(A, x, np.array([1.0, 2.0])) == 0
    assert backward_error(A, x, np.array([1.0, 2.1])) == pytest.approx(0.1 / 4.1)
    assert np.isnan(backward_error(A, np.array([1.0, np.nan]), np.ones(2)))
    assert backward_error(sp.csc_array((0, 0)), np.zeros(0), np.zeros(0)) == 0


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
