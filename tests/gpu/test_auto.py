"""The choice of an engine on a device, and the constants it is made by."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.cli import calibrate, main
from gpusplu.common.timing import backward_error
from gpusplu.cost import calibration, table

pytestmark = pytest.mark.gpu


def test_many_refactorizations_bring_a_device(cupy):
    A = gallery.rlc_mesh(150, 150)
    lu = gs.splu(A, expected_refactors=100_000)
    assert lu.engine != "cpu"
    text = lu.explain()
    assert "predicted, with 100,000 refactorizations and solves" in text
    for engine in ("cpu", "supernodal"):
        assert any(line.startswith(f"  {engine} ") for line in text.splitlines())
    b = np.ones(A.shape[0])
    assert backward_error(A, lu.solve(b), b) < 1e-14


def test_a_small_matrix_stays_on_the_processor(cupy):
    A = gallery.rlc_mesh(20, 20)
    assert gs.splu(A, expected_refactors=5).engine == "cpu"
    assert gs.splu(A, expected_refactors=100).engine == "cpu"


def test_device_is_calibrated(cupy, own_cache, monkeypatch, capsys):
    cases = (("rlc:20x20", False), ("rlc:60x60", False), ("poisson:60x60", True))
    monkeypatch.setattr(calibrate, "DEVICE_CASES", cases)
    monkeypatch.setattr(calibrate, "PROCESSOR_CASES", cases)
    assert main(["bench", "--calibrate", "--budget", "0.04"]) == 0
    assert "supernodal.refactor" in capsys.readouterr().out
    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())["name"].decode()
    fitted = calibration.stored(name)
    assert {"supernodal.refactor", "supernodal.solve", "start.analyze"} <= set(fitted)
    assert sum(fitted["supernodal.refactor"].values()) > 0
    assert calibration.costs_of(name)["start.load"] == table.shipped()["start.load"]
    capsys.readouterr()
    assert main(["bench", "rlc:60x60", "--on-device", "--no-scipy", "--budget", "0.02"]) == 0
    assert any(line.startswith("supernodal") for line in capsys.readouterr().out.splitlines())
