"""``bench --calibrate`` on an emulated device: no constant of the table is left as it was shipped."""

import pytest

from gpusplu.cli import calibrate, main
from gpusplu.common.timing import nothing
from gpusplu.cost import calibration, table
from gpusplu.cost.calibration import fit, with_followers
from gpusplu.cost.model import Observation, seconds
from gpusplu.engines.columns import engine as of_columns
from gpusplu.engines.supernodal import engine as of_fronts

CONSTANTS = [(name, constant) for name, entry in table.entries().items() for constant in entry.constants]


def some_excess(term, features, total, part):
    """Where an emulator is measured noise hides it."""
    return {term: [Observation(features, max(total - part, 1e-9))]}


def test_every_entry_is_reached(cupy, device, own_cache, monkeypatch, capsys):
    monkeypatch.setattr(
        calibrate, "PROCESSOR_CASES", (("rlc:8x8", False), ("poisson:9x9", False), ("poisson:9x9", True))
    )
    monkeypatch.setattr(calibrate, "DEVICE_CASES", (("rlc:6x6", False), ("poisson:6x6", True)))
    monkeypatch.setattr(calibrate, "FIRST_CASES", ())
    monkeypatch.setattr(calibrate, "no_device", lambda: "")
    monkeypatch.setattr(calibrate, "is_loaded", lambda: False)
    monkeypatch.setattr(of_fronts, "compile_kernels", lambda *what: b"")
    for module in (of_columns, of_fronts):
        monkeypatch.setattr(module, "excess", some_excess)
    for module in (calibrate, of_fronts):
        monkeypatch.setattr(module, "synchronizer", lambda: nothing)
    before = calibration.for_core(device.name)
    assert main(["bench", "--calibrate", "--budget", "0.001"]) == 0
    kept = calibration.kept(calibration.processor_name()) | calibration.kept(device.name)
    assert set(kept) == set(table.entries())
    assert calibration.for_core(device.name) is not before


def observed(constants, count=20):
    """Seconds of matrices in each of which another feature counts."""
    found = []
    for k in range(count):
        features = {name: 1e-3 / max(value, 1e-30) * 0.01 for name, value in constants.items()}
        name = list(constants)[k % len(constants)]
        features[name] *= 100 * (1 + k)
        found.append(Observation(features, seconds(constants, features)))
    return found


@pytest.mark.parametrize(("name", "constant"), CONSTANTS)
def test_every_constant_is_found(name, constant):
    """Where all takes half again as long that this constant is of, or the one that it follows in no sum."""
    shipped = table.shipped()
    term, feature = table.entries()[name].follows or (name, constant)
    true = {**shipped[term], feature: 1.5 * shipped[term][feature] or 1e-11}
    fitted = with_followers({term: fit(observed(true), shipped[term])}, shipped)
    factor = 1.5 if name != term or feature not in table.entries()[term].modelled else 1
    expected = factor * shipped[name][constant] if name != term or factor == 1 else true[constant]
    assert fitted[name][constant] == pytest.approx(expected, rel=0.05, abs=0)
    followers = [other for other, entry in table.entries().items() if entry.follows == (term, feature)]
    assert factor == 1.5 or followers
    for other in followers:
        assert fitted[other] == {k: pytest.approx(1.5 * value, rel=0.05, abs=0) for k, value in shipped[other].items()}


def test_plans_change_a_little_at_a_time():
    """What is beyond stays in the ratio, and nothing is counted twice."""
    shipped = table.shipped()
    slow = {**shipped["supernodal.refactor"], "small": 6 * shipped["supernodal.refactor"]["small"]}
    fitted = with_followers({"supernodal.refactor": slow}, shipped)
    before, after = (costs["supernodal.front.small"] for costs in (shipped, fitted))
    assert after == {name: pytest.approx(calibration.MOST_CHANGE * value) for name, value in before.items()}
    assert fitted["supernodal.refactor"]["small"] == pytest.approx(slow["small"] / calibration.MOST_CHANGE)
    assert fitted["supernodal.refactor"]["warp"] == pytest.approx(shipped["supernodal.refactor"]["warp"])
    assert fitted["supernodal.front.warp"] == pytest.approx(shipped["supernodal.front.warp"])
