"""The SFLU engine from end to end on an emulated device."""

import numpy as np
import pytest
import scipy.sparse as sp
from circuits import MATRICES, check_solves, circuit
from small_matrices import canonical, random_matrix, rhs

import gpusplu as gs
from gpusplu import gallery
from gpusplu.engines.registry import registered
from gpusplu.engines.sflu import factorization
from gpusplu.engines.sflu.engine import SfluEngine
from gpusplu.engines.sflu.factorization import Tuning


def tuned(A, **tuning):
    with registered(SfluEngine(tuning=Tuning(**tuning))):
        return gs.splu(A, engine="sflu")


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", MATRICES)
def test_factor_solve_refactor(device, name, dtype):
    A = MATRICES[name](dtype)
    factor = gs.splu(A, engine="sflu")
    assert factor.engine == "sflu"
    check_solves(A, factor, ((), (1,), (6,)))
    scaled = A.copy()
    scaled.data *= 3
    device.counts.clear()
    factor.refactor(scaled.data)
    assert device.counts == {**device.counts, "replay": 1, "factor_sflu": 1}
    check_solves(scaled, factor)
    assert factor.stats.n_refactor == 1
    assert factor.stats.n_repivoted == 0
    assert "sflu: asked for by name" in factor.explain()


def test_by_levels_and_ungrouped_are_the_same(device):
    A, b = circuit("d"), rhs(circuit("d").shape[0])
    x = gs.splu(A, engine="sflu").solve(b)
    launches = dict(device.counts)
    for name in ("leaf_entries", "chain_entries"):
        assert tuned(A, **{name: 30}).solve(b).tobytes() == x.tobytes()
    assert tuned(A, grouped=False).solve(b).tobytes() == x.tobytes()
    device.counts.clear()
    assert tuned(A, grouped=False, by_levels=True).solve(b).tobytes() == x.tobytes()
    levels = device.counts["factor_sflu"]
    assert levels > launches["factor_sflu"] == 1
    assert device.counts["solve_columns_1"] == 2 * levels


def test_a_block_works_on_a_long_column(device):
    A = gallery.named("rlc:14x14")
    n = A.shape[0]
    border = sp.csc_array(1e-3 * np.cos(np.arange(n)[:, None]))
    A = canonical(sp.block_array([[A, border], [border.T, sp.csc_array([[1.0]])]]))
    factor = gs.splu(A, engine="sflu")
    check_solves(A, factor, [()])
    made = factor._core._recorded.program.factorization
    assert made.long_columns.tolist() == [n]
    assert [n, n + 1] in made.launches.groups.range.reshape(-1, 2).tolist()
    x = factor.solve(np.ones(n + 1))
    assert tuned(A, by_levels=True).solve(np.ones(n + 1)).tobytes() == x.tobytes()
    factor = tuned(A, splits=False)
    assert factor._core._recorded.program.factorization.long_columns.size == 0
    check_solves(A, factor, [()])


@pytest.mark.parametrize("shared_memory_bytes", [232448, 6200])
def test_without_maps(device, monkeypatch, shared_memory_bytes):
    monkeypatch.setattr(factorization, "is_mapped", lambda plan: False)
    device.shared_memory_bytes = shared_memory_bytes
    A = circuit("d")
    factor = gs.splu(A, engine="sflu")
    check_solves(A, factor)
    assert device.counts["factor_sflu_search"] == 1


def test_pivots_that_went_bad_are_chosen_anew(device):
    A = random_matrix(60)
    factor = gs.splu(A, engine="sflu")
    rng = np.random.default_rng(0)
    harder = A.copy()
    harder.data = rng.normal(size=A.nnz) * 10.0 ** rng.integers(-6, 7, A.nnz)
    factor.refactor(harder.data)
    check_solves(harder, factor)
    assert factor.stats.n_repivoted == 1


def test_singular_matrix(device):
    A = canonical(sp.csc_array(np.ones((3, 3))))
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        gs.splu(A, engine="sflu")
