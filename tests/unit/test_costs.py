"""Predicted seconds, the traits they are predicted from, and the constants that are fitted and kept."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from small_matrices import random_matrix, rhs, spd_matrix

import gpusplu as gs
from gpusplu import _core, factorize, gallery, symbolic
from gpusplu.cuda import devices
from gpusplu.dispatch import calibration, costs, resolve
from gpusplu.dispatch.calibration import Observation, fit
from gpusplu.dispatch.costs import Prediction
from gpusplu.dispatch.traits import Structure, matrix_traits, structure_of
from gpusplu.engines import choose
from gpusplu.matrix import canonicalize, read_matrix

PRIOR = {"call": 1e-5, "levels": 1e-6, "fill": 1e-9, "flops": 1e-11}
TRUE = {"call": 3e-5, "levels": 0.5e-6, "fill": 4e-9, "flops": 2e-11}


def traits_of(A):
    pattern, data = canonicalize(read_matrix(A))
    return matrix_traits(pattern, pattern.gather(data))


def structure(**changes):
    known = {"n": 1000, "nnz": 5000, "itemsize": 8, "cholesky": False, "method": "column", "ordering": "amd"}
    return Structure(
        **{**known, "fill": 20000, "flops": 1e6, "column_levels": 100, "super_levels": 0, "widest": 0, **changes}
    )


def observations(constants, noise=0.0, count=24):
    """Matrices of all sizes, what they take with these constants."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(count):
        size = 10 ** rng.uniform(2, 6)
        features = {
            "call": 1.0,
            "levels": size ** rng.uniform(0.2, 0.8),
            "fill": size * rng.uniform(1, 20),
            "flops": size * 10 ** rng.uniform(1, 4),
        }
        took = costs.seconds(constants, features) * float(np.exp(noise * rng.standard_normal()))
        found.append(Observation(features, took))
    return found


def test_traits():
    found = traits_of(gallery.poisson(5, 4))
    assert (found.n, found.nnz, found.dtype, found.diagonal) == (20, 82, "float64", 20)
    assert found.density == pytest.approx(82 / 400)
    assert found.hermitian
    assert found.definite_likely
    assert found.diagonally_dominant
    negative = traits_of(-gallery.poisson(5, 4))
    assert negative.hermitian
    assert not negative.definite_likely
    A = sp.csc_array([[1.0, 2, 0], [0, 0, 3], [4, 0, 5]])
    found = traits_of(A)
    assert found.pattern_symmetry == 0
    assert not found.hermitian
    assert found.diagonal == 2
    assert traits_of(sp.csc_array((0, 0))).density == 0


def test_structure_is_that_of_the_analysis():
    A = gallery.poisson(12, 12)
    symbolic = gs.analyze(A, cholesky=True)
    found = structure_of(symbolic._core, symbolic.nnz, 8)
    assert found.fill == symbolic.lnz
    assert found.column_levels == symbolic.column_levels
    assert found.widest == np.diff(symbolic.super_ptr).max() > 1


def test_cholesky_is_half_of_everything_but_the_solve():
    lu, cholesky = (costs.predict_cpu(structure(method="front", cholesky=c), costs.shipped()) for c in (False, True))
    expected = costs.predict_cpu(structure(method="front", flops=2e6), costs.shipped())
    assert (cholesky.factor, cholesky.refactor) == pytest.approx((expected.factor / 2, expected.refactor / 2))
    assert cholesky.solve > lu.solve


def test_flops_of_one_thread_cost_more():
    below, above = (costs.predict_cpu(structure(flops=k * costs.ALONE), costs.shipped()) for k in (0.99, 1.01))
    assert below.refactor > above.refactor
    few = costs.predict_cpu(structure(flops=0.49 * costs.ALONE), costs.shipped())
    term = costs.shipped()["cpu.column.refactor"]
    assert below.refactor - few.refactor == pytest.approx(0.5 * costs.ALONE * (term["flops"] + term["alone"]))


def test_values_are_moved_to_where_they_are_not():
    known = costs.shipped()
    assert costs.predict_cpu(structure(), known).moving == 0
    assert costs.predict_cpu(structure(), known, on_device=True).moving > 0
    assert costs.predict_columns("sflu", structure(), known, on_device=True).moving == 0
    moving = [costs.predict_columns("sflu", structure(nnz=nnz), known).moving for nnz in (5000, 10000)]
    assert moving[1] - moving[0] == pytest.approx(5000 * 8 * known["move.to_device"]["bytes"])


def test_a_hop_a_level():
    few, many = (costs.predict_columns("glu", structure(column_levels=k), costs.shipped()) for k in (100, 1100))
    assert many.refactor - few.refactor > 1000 * 0.84e-6


def test_the_fastest_depends_on_how_often():
    quick = Prediction("cpu", 0.0, 1e-3, 1e-3, 1e-4)
    thorough = Prediction("supernodal", 1.0, 1e-3, 1e-4, 1e-5)
    missing = Prediction("glu", note="there is none")
    assert costs.fastest([thorough, quick, missing], 5).engine == "cpu"
    assert costs.fastest([thorough, quick, missing], 10000).engine == "supernodal"
    with pytest.raises(ValueError, match="empty"):
        costs.fastest([missing], 5)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_fit_finds_the_constants(noise):
    found = fit(observations(TRUE, noise), PRIOR)
    assert found == {name: pytest.approx(value, rel=0.1 if noise == 0 else 0.35) for name, value in TRUE.items()}


def test_fit_is_not_led_by_outliers():
    measured = observations(TRUE)
    for k in (2, 9, 17):
        measured[k] = measured[k]._replace(seconds=10 * measured[k].seconds)
    found = fit(measured, PRIOR)
    clean = observations(TRUE)
    assert calibration.spread(clean, found) < 1.1
    assert max(found[name] / TRUE[name] for name in TRUE) < 1.5


def test_fit_of_little_keeps_the_shape_of_the_prior():
    one = observations({name: 3 * value for name, value in PRIOR.items()}, count=1)
    assert fit(one, PRIOR) == {name: pytest.approx(3 * value, rel=1e-6) for name, value in PRIOR.items()}
    assert fit([], PRIOR) == PRIOR


def test_fit_keeps_zeros():
    found = fit(observations(TRUE), {**PRIOR, "fill": 0.0})
    assert found["fill"] == 0
    assert all(value >= 0 for value in found.values())


def test_constants_are_kept_by_subject(own_cache):
    term = {name: 2 * value for name, value in costs.shipped()["sflu.refactor"].items()}
    calibration.store("a device", {"sflu.refactor": term})
    assert calibration.costs_of("a device")["sflu.refactor"] == term
    assert calibration.costs_of("a device")["glu.refactor"] == costs.shipped()["glu.refactor"]
    assert calibration.costs_of("another device") == costs.shipped()
    assert calibration.costs_of() == costs.shipped()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 1}',
        json.dumps({"version": calibration.VERSION, "subject": "a device", "costs": 3}),
        json.dumps({"version": calibration.VERSION, "subject": "other", "costs": {"sflu.solve": {}}}),
        json.dumps({"version": calibration.VERSION + 1, "subject": "a device", "costs": {"sflu.solve": {}}}),
    ],
)
def test_a_damaged_file_counts_as_none(own_cache, text):
    path = calibration.store("a device", {"move.to_host": {"call": 1.0, "bytes": 1.0}})
    assert calibration.stored("a device")
    path.write_text(text)
    calibration.stored.cache_clear()
    assert calibration.costs_of("a device") == costs.shipped()


@pytest.mark.parametrize("term", [{"call": -1.0, "bytes": 1.0}, {"call": float("nan"), "bytes": 1.0}, {"call": 1.0}, 7])
def test_terms_that_do_not_fit_are_left_out(own_cache, term):
    good = {"call": 1.0, "levels": 1.0, "fill": 1.0}
    calibration.store("a device", {"sflu.solve": good})
    path = calibration.path_of("a device")
    text = json.loads(path.read_text())
    text["costs"]["move.to_host"] = term
    path.write_text(json.dumps(text))
    calibration.stored.cache_clear()
    assert calibration.stored("a device") == {"sflu.solve": good}


@pytest.mark.parametrize("call", [gs.splu, gs.analyze, gs.explain, gs.cholesky])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), True])
def test_expected_refactors_is_checked(call, value):
    with pytest.raises(ValueError, match=r"expected_refactors=.* must be a number that is not negative"):
        call(spd_matrix(), expected_refactors=value)


def test_expected_refactors_is_told(monkeypatch):
    A = random_matrix()
    text = gs.explain(A, expected_refactors=1234)
    assert "predicted, with 1,234 refactorizations and solves" in text
    lu = gs.splu(A, expected_refactors=0)
    assert "with 0 refactorizations" in lu.explain()
    np.testing.assert_allclose(A @ lu.solve(rhs(A.shape[0])), rhs(A.shape[0]), atol=1e-8)


def test_small_matrices_stay_on_the_cpu_unless_refactored_often(monkeypatch):
    monkeypatch.setattr(resolve, "no_device", lambda: "")
    usual, often = (resolve.choose_engine("auto", expected_refactors=k) for k in (5, 10_000))
    assert resolve.without_small(usual, resolve.SMALLEST - 1).engine == "cpu"
    assert resolve.without_small(usual, resolve.SMALLEST).engine == "auto"
    assert resolve.without_small(often, resolve.SMALLEST - 1).engine == "auto"
    assert resolve.without_small(often, 20).engine == "cpu"
    once = resolve.choose_engine("auto", expected_refactors=0)
    assert resolve.without_small(once, resolve.SMALLEST).engine == "auto"


def test_explain_predicts_what_the_cpu_takes():
    text = gs.explain(gallery.poisson(20, 20))
    line = next(line for line in text.splitlines() if line.startswith("  cpu"))
    assert line.split()[-1] in ("us", "ms")
    assert "Hermitian, likely positive definite, where cholesky does half the work" in text
    assert "half the work" not in gs.explain(gallery.poisson(20, 20), cholesky=True)
    assert "half the work" not in gs.explain(-gallery.poisson(20, 20))


def test_expected_refactors_chooses_method_and_ordering():
    few, many = (gs.analyze(gallery.rlc_mesh(20, 20), expected_refactors=k) for k in (0, 1000))
    assert (few.method, many.method) == ("front", "column")
    few, many = (gs.analyze(gallery.power_mesh(60, 60), expected_refactors=k) for k in (5, 1000))
    assert (few.ordering, many.ordering) == ("amd", "nd")


def test_column_engines_take_the_ordering_with_the_shorter_way():
    structures = [structure(column_levels=900), structure(column_levels=100, fill=21000)]
    usual = resolve.Choice("auto", "")
    found = choose.predict_all_columns(structures, costs.shipped(), usual, 10**9)
    assert [p.engine for p in found] == ["glu", "sflu", "crisscross"]
    assert found[0] == costs.predict_columns("glu", structures[1], costs.shipped())
    assert choose.predict_all_columns([], costs.shipped(), usual, 10**9) == []
    crowded = choose.predict_all_columns(structures, costs.shipped(), usual, 1000)
    assert all("bytes of device memory are needed, 1,000 may be used" in p.note for p in crowded)


def test_the_choice_says_what_was_compared():
    predictions = (
        Prediction("cpu", 0.0, 1e-2, 1e-2, 1e-3),
        Prediction("sflu", 1e-2, 1e-2, 1e-3, 1e-4),
        Prediction("supernodal", note="too little memory"),
    )
    planned = object()
    on_device = choose.OnDevice(SimpleNamespace(index=3), planned, [], ())
    choice, kept = choose.decide(resolve.Choice("auto", "", device_memory=7), predictions, on_device)
    assert (choice.engine, choice.device, choice.device_memory, kept) == ("sflu", 3, 7, None)
    assert choice.predictions == predictions
    for part in ("predicted 0.026 s", "0.065 s with cpu", "5 refactorizations", "supernodal: too little memory"):
        assert part in choice.reason
    once = resolve.Choice("auto", "", refactorizations=0)
    assert choose.decide(once, predictions, on_device)[0].engine == "cpu"
    faster = (*predictions[:2], Prediction("supernodal", 0.0, 1e-5, 1e-5, 1e-5))
    choice, kept = choose.decide(once, faster, on_device)
    assert (choice.engine, kept) == ("supernodal", planned)


@pytest.mark.parametrize("b", [np.ones(60), sp.csc_array(np.eye(60, 3))])
def test_spsolve_expects_one_use(monkeypatch, b):
    asked = []

    def analyze_pattern(pattern, canonical, options, choice, cholesky, seconds):
        asked.append(choice.refactorizations)
        return symbolic.analyze_pattern(pattern, canonical, options, resolve.Choice("cpu", ""), cholesky, seconds)

    monkeypatch.setattr(resolve, "no_device", lambda: "")
    monkeypatch.setattr(resolve, "SMALLEST", 0)
    monkeypatch.setattr(factorize, "analyze_pattern", analyze_pattern)
    A = sp.csc_array(random_matrix())
    x = gs.spsolve(A, b)
    assert abs(A @ x - b).max() < 1e-10
    gs.splu(A)
    assert asked == [1, costs.REFACTORIZATIONS]


def test_a_device_has_to_be_faster_by_a_margin():
    on_device = choose.OnDevice(SimpleNamespace(index=0), object(), [], ())
    for step, engine in ((0.95e-3, "cpu"), (0.85e-3, "glu")):
        predictions = (Prediction("cpu", 0.0, 1e-3, 1e-3), Prediction("glu", 0.0, step, step))
        assert choose.decide(resolve.Choice("auto", ""), predictions, on_device)[0].engine == engine


def test_kernels_that_are_not_compiled_are_charged_for():
    known = costs.shipped()
    asked = []

    def compiled(*what):
        asked.append(what)
        return len(asked) > 1

    device = SimpleNamespace(compiled=compiled)
    once, again = (choose.first_use(device, np.dtype("f"), True, known) for _ in range(2))
    assert once == pytest.approx(choose.COMPILE_SHARE * known["start.compile"]["call"])
    assert again == 0
    assert asked == 2 * [(choose.FILES, "f", 1)]
    predictions = (Prediction("cpu", 0.0, 0.1, 0.0), Prediction("supernodal", 0.0, 0.01, 0.0))
    for charged, engine in ((once, "cpu"), (0.0, "supernodal")):
        on_device = choose.OnDevice(SimpleNamespace(index=0), object(), [], (), charged)
        choice = choose.decide(resolve.Choice("auto", ""), predictions, on_device)[0]
        assert choice.engine == engine
        assert ("to be compiled" in choice.reason) == (charged > 0)


def test_small_work_does_not_wait_for_a_compiler(monkeypatch):
    """Neither is anything analysed for a device then."""
    A = gallery.rlc_mesh(20, 20)
    pattern, data = canonicalize(read_matrix(A))
    options, canonical = gs.options.Options(), pattern.gather(data)
    core = _core.analyze(pattern.ptr, pattern.ind, canonical)
    device, analysed = SimpleNamespace(compiled=lambda *what: False), []
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace())
    monkeypatch.setattr(devices, "open_device", lambda which=None: device)

    def predict_on_device(*arguments):
        analysed.append(arguments)
        raise gs.EngineUnavailableError("none")

    monkeypatch.setattr(choose, "predict_on_device", predict_on_device)
    often = resolve.Choice("auto", "", refactorizations=1000)
    assert "would not pay" in choose.choose(pattern, canonical, options, False, often, core)[0].reason
    assert not analysed
    device.compiled = lambda *what: True
    assert "no GPU engine" in choose.choose(pattern, canonical, options, False, often, core)[0].reason
    assert analysed
