"""Orderings and methods are chosen by the constants of the table, in the core and for columns on a device."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.matrix import canonicalize, read_matrix
from gpusplu.common.options import Options
from gpusplu.common.traits import structure_of
from gpusplu.cost import calibration, table
from gpusplu.cost.processor import predict
from gpusplu.cuda import layout
from gpusplu.engines import registry
from gpusplu.engines.problem import Problem, Request


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
    A = gallery.power_mesh(60, 60)
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
    predicted = predict(structure_of(core, A.nnz, 8), calibration.costs_of()).total(70)
    assert considered[core.ordering, core.method] == pytest.approx(predicted, rel=rel)
    assert {("amd", "front"), ("nd", "front")} <= set(considered)


def test_explain_says_what_orderings_were_compared():
    for ldlt in (False, True):
        text = gs.explain(gallery.power_mesh(60, 60), expected_refactors=1000, ldlt=ldlt)
        line = next(line for line in text.splitlines() if line.startswith("ordering"))
        compared = r"ordering  nd; predicted \S+ m?s with amd by LDL\^T, \S+ m?s with nd by LDL\^T"
        assert re.fullmatch(
            compared + ("" if ldlt else r", \S+ m?s with nd by columns, \S+ m?s with nd by fronts"), line
        )
    assert "ordering  natural\n" in gs.explain(gallery.poisson(5, 5), ordering="natural")


@pytest.mark.parametrize(("feature", "ordering"), [("levels", "nd"), ("flops", "amd")])
def test_column_engines_order_by_their_own_predictions(monkeypatch, feature, ordering):
    engine = registry.named("sflu")
    monkeypatch.setattr(engine, "device", lambda problem: SimpleNamespace(name="none"))
    for phase in ("refactor", "solve"):
        term = {name: 1e-9 * (name == feature) for name in table.shipped()[f"sflu.{phase}"]}
        monkeypatch.setitem(table._table, f"sflu.{phase}", table.Entry(term, "here"))
    pattern, data = canonicalize(read_matrix(gallery.rlc_mesh(35, 35)))
    analysis = engine.analyze(Problem(pattern, pattern.gather(data), "lu", Options(), Request()))
    assert analysis.core.ordering == ordering
    assert [name for name, _ in analysis.compared] == ["amd", "nd"]
