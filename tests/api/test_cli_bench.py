"""``gpusplu bench``, run in this process."""

import json
import re
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from gpusplu import gallery
from gpusplu.cli import calibrate, main
from gpusplu.cost import calibration
from gpusplu.cost.table import shipped
from support.command_line import failure


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
    assert "a step of it is splu and solve" in out
    assert all(float(row[-1]) < 1e-14 for row in rows)
    assert out.count("auto: cpu, engine='auto' and") == 2


def test_bench_of_definite_matrices_without_scipy(capsys, own_cache):
    assert main(["bench", "elast:3x3x3", "--cholesky", "--no-scipy", "--budget", "0.001", "--engine", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "definite" in out
    assert "SciPy  " not in out


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["poisson:x"], "is not family:AxB"),
        (["nowhere.mtx"], "nowhere.mtx: no such file"),
        (["poisson:9x9", "--engine", "abacus"], "--engine abacus: not among auto,cpu"),
        (["poisson:9x9", "--budget", "0"], "--budget 0.0: must be positive"),
    ],
)
def test_bench_of_bad_input(capsys, arguments, message):
    assert message in failure(capsys, "bench", *arguments)
