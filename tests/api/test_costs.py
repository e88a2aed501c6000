"""Predicted seconds and their constants, orderings and methods chosen by them, and the table of docs/use/scaling.md."""

import json
import re
from math import log
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.cost import calibration, model, table
from gpusplu.cost.calibration import fit
from gpusplu.cost.features import predict
from gpusplu.cost.model import Observation
from gpusplu.cost.scale import DEVICE_BYTES, LARGE, lasting, may_stream, needs, size
from gpusplu.cuda import layout
from gpusplu.dispatch.report import scale_text
from gpusplu.engines.columns.engine import predict as predict_columns
from gpusplu.engines.problem import Request
from support.processes import run
from support.small_matrices import random_matrix, rhs

PRIOR = {"call": 1e-5, "levels": 1e-6, "fill": 1e-9, "flops": 1e-11}
TRUE = {"call": 3e-5, "levels": 0.5e-6, "fill": 4e-9, "flops": 2e-11}


def analysis(**changes):
    known = {"n": 1000, "nnz": 5000, "kind": "lu", "method": "column", "super_ptr": np.zeros(1, np.int32)}
    return SimpleNamespace(**{**known, "lnz": 20000, "flops": 1e6, "column_levels": 100, **changes})


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
        took = model.seconds(constants, features) * float(np.exp(noise * rng.standard_normal()))
        found.append(Observation(features, took))
    return found


def test_values_are_moved_to_where_they_are_not():
    known = table.shipped()
    assert predict(analysis(), 8, known).moving == 0
    assert predict(analysis(), 8, known, on_device=True).moving > 0
    assert predict_columns("sflu", analysis(), 8, known, on_device=True).moving == 0
    moving = [predict_columns("sflu", analysis(nnz=nnz), 8, known).moving for nnz in (5000, 10000)]
    assert moving[1] - moving[0] == pytest.approx(5000 * 8 * known["move.to_device"]["bytes"])


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_fit_finds_the_constants(noise):
    found = fit(observations(TRUE, noise), PRIOR)
    assert calibration.spread(observations(TRUE, noise), found) < 1.1
    assert found == {name: pytest.approx(value, rel=0.1 if noise == 0 else 0.35) for name, value in TRUE.items()}


def test_fits_of_little_and_of_zeros():
    one = observations({name: 3 * value for name, value in PRIOR.items()}, count=1)
    assert fit(one, PRIOR) == {name: pytest.approx(3 * value, rel=1e-6) for name, value in PRIOR.items()}
    assert fit([], PRIOR) == PRIOR
    found = fit(observations(TRUE), {**PRIOR, "fill": 0.0})
    assert found["fill"] == pytest.approx(TRUE["fill"], rel=0.2)
    without = {**TRUE, "fill": 0.0}
    found = fit(observations(without), {**PRIOR, "fill": 0.0})
    assert found == {name: pytest.approx(value, rel=0.1, abs=1e-12) for name, value in without.items()}


def test_constants_are_kept_by_subject(own_cache):
    term = {name: 2 * value for name, value in table.shipped()["sflu.refactor"].items()}
    calibration.store("a device", {"sflu.refactor": term})
    assert calibration.costs_of("a device")["sflu.refactor"] == term
    assert calibration.costs_of("a device")["glu.refactor"] == table.shipped()["glu.refactor"]
    assert calibration.costs_of("another device") == table.shipped()
    assert calibration.costs_of() == table.shipped()


def test_damaged_files_count_as_none_and_terms_that_do_not_fit_are_left_out(own_cache):
    good, whole = {"call": 1.0, "levels": 1.0, "fill": 1.0}, {"version": calibration.VERSION, "subject": "a device"}
    path = calibration.store("a device", {"sflu.solve": good})
    text = json.loads(path.read_text())
    for term in ({"call": -1.0, "bytes": 1.0}, {"call": float("nan"), "bytes": 1.0}, {"call": 1.0}, 7):
        text["costs"]["move.to_host"] = term
        path.write_text(json.dumps(text))
        calibration.forget()
        assert calibration.stored("a device") == {"sflu.solve": good}
    others = {"subject": "other"}, {"version": calibration.VERSION + 1}, {"costs": 3}
    damaged = [json.dumps({**whole, "costs": {"sflu.solve": {}}, **other}) for other in others]
    for text in ("", "{", "[]", '{"version": 1}', *damaged):
        path.write_text(text)
        calibration.forget()
        assert calibration.costs_of("a device") == table.shipped()


def test_expected_refactors_is_told(monkeypatch):
    A = random_matrix()
    text = gs.explain(A, expected_refactors=1234)
    assert "predicted, with 1,234 refactorizations and solves" in text
    lu = gs.splu(A, expected_refactors=0)
    assert "with 0 refactorizations" in lu.explain()
    np.testing.assert_allclose(A @ lu.solve(rhs(A.shape[0])), rhs(A.shape[0]), atol=1e-8)


def test_explain_predicts_what_the_cpu_takes():
    text = gs.explain(gallery.poisson(20, 20))
    heading, line = text.splitlines()[-2:]
    assert heading.split()[-2:] in (["total", "[us]"], ["total", "[ms]"])
    assert line.split()[0] == "cpu" and 0 < float(line.split()[-1]) < 1000
    assert "Hermitian, likely positive definite; cholesky would need half the work" in text
    assert "half the work" not in gs.explain(gallery.poisson(20, 20), cholesky=True)
    assert "half the work" not in gs.explain(-gallery.poisson(20, 20))


def test_expected_refactors_chooses_method_and_ordering():
    few, many = (gs.analyze(gallery.rlc_mesh(30, 30), expected_refactors=k) for k in (0, 1000))
    assert (few.method, many.method) == ("front", "column")
    few, many = (gs.analyze(gallery.power_mesh(60, 60), expected_refactors=k) for k in (5, 1000))
    assert (few.ordering, many.ordering) == ("amd", "nd")


def test_the_core_takes_every_constant_of_its_entries():
    """What a struct of costs.hpp has no member for would be lost without a word."""
    found = []

    def walk(dtype, name):
        for member in dtype.names:
            inner, place = dtype[member], f"{name}.{member}".lstrip(".")
            if inner[0].names is None:
                found.append(place)
                assert set(table.shipped()[place]) <= set(inner.names), place
            else:
                walk(inner, place)

    walk(layout.struct("shared/costs.hpp", "Costs"), "")
    assert {"cpu.column.factor", "cpu.dissection", "supernodal.merge.large", "glu.schedule"} <= set(found)


def decided(A, many=1000, **changes):
    """Ordering and method of the processor where constants are others, 0 but for those that are named."""
    changed = {name: dict.fromkeys(table.shipped()[name], 0.0) | term for name, term in changes.items()}
    core = analyze_with(calibration.packed({**table.shipped(), **changed}), A, many)
    return core.ordering, core.method


def analyze_with(costs, A, many):
    return gs._core.analyze(A.indptr.astype(np.int64), A.indices, A.data, costs, refactorizations=many)


def test_orderings_and_methods_are_chosen_by_the_constants():
    A = gallery.power_mesh(80, 80)
    assert decided(A) == ("nd", "front")
    assert decided(A, **{"cpu.dissection": {"rows": 1.0}}) == ("amd", "front")
    assert decided(A, **{"cpu.dissection": {"entries": 1.0}}) == ("amd", "front")
    assert decided(A, many=5) == ("amd", "front")
    assert decided(A, many=5, **{"cpu.dissection": {}, "cpu.front.factor": {"flops": 1.0}})[0] == "nd"
    dear = {"call": 1.0}
    assert decided(A, many=0, **{"cpu.front.factor": dear})[1] == "column"
    assert decided(A, many=1, **{"cpu.front.solve": dear})[1] == "column"
    for phase in ("factor", "refactor", "solve"):
        assert decided(A, **{f"cpu.column.{phase}": dear})[1] == "front"


@pytest.mark.parametrize(("cholesky", "rel"), [(True, 1e-12), (False, 0.05)])  # LU: flops are counted by fronts later
def test_the_core_predicts_what_python_does(cholesky, rel):
    A = gallery.poisson(70, 70)
    arrays = A.indptr.astype(np.int64), A.indices, A.data, calibration.for_core()
    core = gs._core.analyze(*arrays, cholesky=cholesky, refactorizations=70)
    considered = {(ordering, method): seconds for ordering, method, seconds in core.considered}
    predicted = predict(core, 8, calibration.costs_of()).total(70)
    assert considered[core.ordering, core.method] == pytest.approx(predicted, rel=rel)
    assert {("amd", "front"), ("nd", "front")} <= set(considered)


@pytest.mark.parametrize(("name", "degree"), [("poisson:47x47x47", False), ("stokes:200x200", True)])
def test_large_graphs_are_ordered_by_minimum_degree_where_it_may_win(name, degree):
    A = gallery.named(name).tocsc()
    core = analyze_with(calibration.for_core(), A, 5)
    assert core.ordering == ("amd" if degree else "nd")
    assert (("amd", "front") in {considered[:2] for considered in core.considered}) == degree


def test_explain_says_what_orderings_were_compared():
    for ldlt in (False, True):
        text = gs.explain(gallery.power_mesh(60, 60), expected_refactors=1000, ldlt=ldlt)
        line = next(line for line in text.splitlines() if line.startswith("ordering"))
        compared = r"ordering  nd; predicted \S+ m?s with amd by LDL\^T, \S+ m?s with nd by LDL\^T"
        assert re.fullmatch(
            compared + ("" if ldlt else r", \S+ m?s with nd by columns, \S+ m?s with nd by fronts"), line
        )
    assert "ordering  natural\n" in gs.explain(gallery.poisson(5, 5), ordering="natural")


@pytest.mark.parametrize("name", ["glu", "sflu", "crisscross"])
def test_engines_by_columns_bring_the_constants_of_their_pivots(name):
    """They are predicted by them, also where the engine of the processor was never asked for."""
    run(
        f"import gpusplu.engines.{name}.engine\n"
        "from gpusplu.cost.table import shipped\n"
        "assert {'cpu.column.factor', 'columns.analyze'} <= set(shipped())\n"
    )


ROOT = Path(__file__).parents[2]
#: Measured factors (performance/results/supernodal.md): unknowns, entries of L, flops, columns of the widest supernode.
ANCHORS = {
    "2D Poisson": (1_000_000, 3.6e7, 1.09e10, 1500),
    "3D Poisson": (512_000, 2.9e8, 1.06e12, 11208),
    "3D elasticity": (201_720, 2.4e8, 7.69e11, 8580),
}
UNKNOWNS = (10**6, 4 * 10**6, 2 * 10**7, 10**8, 10**9)


def grown(family, n):
    """Fill, flops and widest supernode at n unknowns, as nested dissection has it (George; Lipton, Rose and Tarjan)."""
    first, fill, flops, widest = ANCHORS[family]
    ratio = n / first
    if family.startswith("2D"):
        return fill * ratio * log(n) / log(first), flops * ratio**1.5, widest * ratio**0.5
    return fill * ratio ** (4 / 3), flops * ratio**2, widest * ratio ** (2 / 3)


def row(family, n):
    fill, flops, widest = grown(family, n)
    needed = needs(fill, flops, 8, 1, widest)
    holds, streams = needed.device <= DEVICE_BYTES, may_stream(needed, DEVICE_BYTES)
    device = lasting(needed.on_device if holds else needed.streamed) if flops >= LARGE and (holds or streams) else "-"
    way = "in one piece" if holds else "streaming" if streams else "does not fit"
    cells = (size(needed.factors), size(needed.device), f"{flops:.2g}", way, device)
    return f"| {family} | {n:.0e} | {' | '.join(cells)} | {needed.machines} | {lasting(needed.on_machines)} |".replace(
        "e+0", "e"
    )


@pytest.mark.parametrize("n", UNKNOWNS)
@pytest.mark.parametrize("family", ANCHORS)
def test_the_table_of_the_page_is_what_the_model_says(family, n):
    assert row(family, n) in (ROOT / "docs" / "use" / "scaling.md").read_text().splitlines()


def test_each_regime_is_named():
    def text(fill, flops, widest=100, **request):
        core = analysis(lnz=fill, flops=flops, super_ptr=np.array([0, widest], np.int32), kind="cholesky")
        return scale_text(Request(**request), core, 8)

    assert text(1_000_000, 1e8) == "8 MB of factors, about 32 MB on a device: one GPU is enough"
    assert text(10**9, 2.8e13).endswith("one GPU is enough, 1 s a refactorization on an H200")
    large = text(10**10, 2.8e14)
    assert large.startswith("80 GB of factors, about 320 GB on a device, more than 141 GB: ")
    assert "streaming through one GPU, 10 s a refactorization, or 3 GPUs of one host, device='all', 6.2 s, or" in large
    assert " a machine without GPUs, 10 min: gpusplu.distributed" in large
    assert large.endswith(", 10 min: gpusplu.distributed")
    assert "stream" not in text(10**10, 2.8e14, widest=100_000)
    assert text(10**12, 1e18).split(": ")[1].startswith("a cluster, 36 x 512 GB, 17 h")
    several = text(10**10, 2.8e14, device=0, devices=(0, 1, 2, 3), device_memory=100 * 10**9)
    assert several.endswith("320 GB on a device, more than 100 GB: these 4 GPUs hold them, 5.7 s a refactorization")
    assert "more than 1 MB: streaming through one GPU, " in text(1_000_000, 1e8, device_memory=10**6)


def test_explain_says_what_is_needed():
    A = gallery.poisson(12, 12)
    assert "\nscale     " in gs.explain(A)
    assert "one GPU is enough" in gs.explain(A, cholesky=True)
