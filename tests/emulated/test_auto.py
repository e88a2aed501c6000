"""Which engine runs where nobody names one, on an emulated device."""

import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.cost import table
from gpusplu.cuda import presence
from gpusplu.dispatch import request
from gpusplu.dispatch import selection as select
from gpusplu.engines.problem import Problem
from support.small_matrices import EPS, rhs

pytestmark = pytest.mark.usefixtures("cupy")


def accurate(A, factor):
    b = rhs(A.shape[0], A.dtype)
    assert backward_error(A, factor.solve(b), b) < 100 * EPS[A.dtype.char]


def expect_a_start_of(monkeypatch, seconds):
    """Have the model take the start of a device for this long."""
    monkeypatch.setitem(table._table, "start.factor", table.Entry({"call": seconds}, "here"))


def count(monkeypatch, analysis):
    """How often an analysis of the core is made."""
    made, analyze = [], Problem._analyzed

    def counting(self, key, *arguments, **options):
        known = self.memo.get(key) is not None
        if key == analysis and not known:
            made.append(key)
        return analyze(self, key, *arguments, **options)

    monkeypatch.setattr(Problem, "_analyzed", counting)
    return made


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_auto_follows_the_model(device, monkeypatch, seconds):
    """The model is asked where a device is and the matrix is no small one."""
    monkeypatch.setattr(presence, "no_driver", lambda: "")
    monkeypatch.setattr(presence, "no_device", lambda: "")
    A = gallery.poisson(20, 20)
    assert "1,920 entries are too few" in gs.splu(A).explain()
    monkeypatch.setattr(request, "SMALLEST", 0)
    expect_a_start_of(monkeypatch, -seconds)
    factor = gs.cholesky(A)
    assert factor.engine == ("supernodal" if seconds else "cpu")
    assert "predicted" in factor.explain()
    accurate(A, factor)


@pytest.mark.parametrize("ordering", ["nd", "amd"])
def test_fronts_by_dissection_are_not_analysed_twice(device, monkeypatch, ordering):
    monkeypatch.setattr(presence, "no_driver", lambda: "")
    monkeypatch.setattr(presence, "no_device", lambda: "")
    monkeypatch.setattr(request, "SMALLEST", 0)
    expect_a_start_of(monkeypatch, -1e9)
    analysed = count(monkeypatch, "for_fronts")
    A = gallery.poisson(12, 12)
    factor = gs.cholesky(A, ordering=ordering)
    assert factor.engine == "supernodal"
    assert len(analysed) == (ordering == "amd")
    accurate(A, factor)


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_a_likely_device_is_looked_at_first(device, monkeypatch, seconds):
    """One analysis where the device wins; the CPU engine's only where it does not."""
    monkeypatch.setattr(presence, "no_driver", lambda: "")
    monkeypatch.setattr(presence, "no_device", lambda: "")
    monkeypatch.setattr(select, "LIKELY", 1000)
    expect_a_start_of(monkeypatch, seconds - 5e8)
    analysed = count(monkeypatch, "for_processor")
    A = gallery.poisson(20, 20)
    factor = gs.splu(A, expected_refactors=1000)
    assert factor.engine == ("cpu" if seconds else "supernodal")
    assert len(analysed) == (factor.engine == "cpu")
    assert "predicted, with 1,000 refactorizations" in factor.explain()
    accurate(A, factor)


def test_auto_keeps_to_the_memory_of_the_device(device, monkeypatch):
    monkeypatch.setattr(presence, "no_driver", lambda: "")
    monkeypatch.setattr(presence, "no_device", lambda: "")
    monkeypatch.setattr(request, "SMALLEST", 0)
    expect_a_start_of(monkeypatch, -1e9)
    factor = gs.cholesky(gallery.poisson(20, 20), device_memory=10_000)
    assert factor.engine == "cpu"
    assert "bytes of device memory are needed, 10,000 may be used" in factor.explain()


def test_a_device_asked_for_leaves_the_choice_among_its_engines(device, monkeypatch):
    A = gallery.rlc_mesh(6, 6)
    assert gs.splu(A, device=0).engine != "cpu"
    with pytest.raises(gs.DeviceMemoryError, match="10,000"):
        gs.splu(A, device=0, device_memory=10_000)
    for term in ("sflu.refactor", "sflu.solve"):
        monkeypatch.setitem(table._table, term, table.Entry(dict.fromkeys(table.shipped()[term], 0.0), "here"))
    factor = gs.splu(A, device=0, expected_refactors=10**9)
    assert factor.engine == "sflu"
    assert "sflu: device=0 was asked for; predicted" in factor.explain()
    accurate(A, factor)
