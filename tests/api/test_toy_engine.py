"""How engines are chosen and registered; support/toy_engine.py is one that no file of the product knows."""

import contextlib
import pickle

import pytest

import gpusplu as gs
from gpusplu import cli, gallery
from gpusplu.common.timing import backward_error
from gpusplu.cost.model import Estimate
from gpusplu.cuda import devices, presence
from gpusplu.engines import registry
from support.emulated_device import EmulatedDevice
from support.small_matrices import EPS, random_matrix, rhs
from support.toy_engine import ToyEngine


class Fast(ToyEngine):
    """The toy engine, if it were faster than all others."""

    def estimate(self, problem):
        return Estimate(self.name, factor=1e-9, refactor=1e-9, solve=1e-9)


@pytest.mark.parametrize("engine", ["toy", "auto"])
def test_a_new_engine_is_an_engine_like_any_other(engine, capsys):
    A, b = random_matrix(40), rhs(40)
    with registry.registered(Fast()):
        lu = gs.splu(A, engine=engine)
        lu.refactor(2 * A.data)
        for factor in (lu, pickle.loads(pickle.dumps(lu))):
            assert (factor.engine, factor.stats.engine, factor.stats.nnz_factor) == ("toy", "toy", 1600)
            assert "engine    toy: " in factor.explain() and "\n  toy " in gs.explain(A, engine=engine)
            assert backward_error(2 * A, factor.solve(b), b) < 100 * EPS["d"]
        with pytest.raises(gs.EngineUnavailableError, match="engine='toy' has no cholesky factorization"):
            gs.cholesky(A @ A.T, engine="toy")
        assert cli.main(["doctor"]) == 0 and "toy          available" in capsys.readouterr().out


@pytest.mark.thorough
def test_bench_measures_it():
    with registry.registered(Fast()):
        assert cli.main(["bench", "rlc:6x6", "--budget", "0.01", "--engine", "toy"]) == 0


class Predicting(ToyEngine):
    """An engine whose seconds are given."""

    def __init__(self, name, on_device=False, **seconds):
        self.name, self.seconds = name, seconds
        self.capabilities = ToyEngine.capabilities._replace(on_device=on_device)

    def lower_bound(self, problem):
        return 0.0

    def estimate(self, problem):
        return Estimate(self.name, **self.seconds)


@pytest.fixture
def chosen(monkeypatch):
    """The analysis of a matrix, where there are these engines, the CPU engine and a device."""
    device = EmulatedDevice()
    monkeypatch.setattr(devices, "open_device", lambda which=None: device)
    for name in ("no_driver", "no_device"):
        monkeypatch.setattr(presence, name, lambda: "")

    def choose(*engines, **options):
        gs.cache_clear()
        with contextlib.ExitStack() as stack:
            for engine in engines:
                stack.enter_context(registry.registered(engine))
            A = gallery.rlc_mesh(90, 90)
            return gs.analyze(A, **options).engine, gs.explain(A, **options)

    return choose


def test_the_choice_depends_on_how_often_and_says_what_was_compared(chosen):
    quick = Predicting("quick", factor=1e-9, refactor=1e-6, solve=0.0)
    thorough = Predicting("thorough", factor=1e-6, refactor=1e-9, solve=0.0)
    missing = Predicting("missing", note="too little memory")
    for often, name, other in ((0, "quick", "thorough"), (1000, "thorough", "quick")):
        engine, text = chosen(quick, thorough, missing, expected_refactors=often)
        assert engine == name
        for part in (f"engine    {name}: ", f" s (next: {other}, ", f"{often} refactorizations and solves"):
            assert part in text
        assert "missing: too little memory" in text


def test_a_device_has_to_be_faster_by_a_margin(chosen):
    often = {"expected_refactors": 1e6}
    host = Predicting("quick", factor=0.0, refactor=1e-5, solve=0.0)
    for refactor, name in ((0.95e-5, "quick"), (0.85e-5, "there")):
        engine, text = chosen(host, Predicting("there", True, factor=0.0, refactor=refactor, solve=0.0), **often)
        assert engine == name and "predicted" in text
    charged = Predicting("there", True, factor=0.0, refactor=0.0, solve=0.0, first_use=1e3)
    engine, text = chosen(host, charged, **often)
    assert engine == "quick" and "1e+03 s are added for kernels that must be compiled" in text


def test_calls_are_made_again_without_the_pattern_cache_if_memory_is_short(caplog):
    class Short(Fast):
        name = "short"

        def analyze(self, problem):
            if gs.cache_info().currsize:
                raise MemoryError
            return super().analyze(problem)

    A, b = random_matrix(40), rhs(40)
    gs.splu(gallery.poisson(5, 5))
    with registry.registered(Short()), caplog.at_level("WARNING", "gpusplu"):
        assert backward_error(A, gs.splu(A, engine="short").solve(b), b) < 100 * EPS["d"]
        assert gs.cache_info().currsize == 1 and len(caplog.messages) == 1 and "memory" in caplog.text
        gs.cache_clear()
        gs.splu(A, engine="short")


def test_small_matrices_stay_on_the_cpu(chosen):
    there = Predicting("there", True, factor=0.0, refactor=0.0, solve=0.0)
    with registry.registered(there):
        assert "entries are too few for a GPU to be faster" in gs.splu(gallery.poisson(5, 5)).explain()
    assert chosen(there, expected_refactors=1e6)[0] == "there"
