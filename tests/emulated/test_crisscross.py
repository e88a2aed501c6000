"""The crisscross engine from end to end on an emulated device."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.cost.calibration import for_core
from gpusplu.cost.table import shipped
from gpusplu.engines.crisscross.model import finishing_times, trailing_costs
from gpusplu.engines.sflu.factorization import Tuning
from support.column_engines import check_trailing_block, circuit
from support.column_engines import crisscross as divided
from support.small_matrices import canonical, random_matrix, rhs
from support.solves import check_bits_repeat, check_solves


@pytest.fixture
def device(device):
    """The emulated device with few multiprocessors."""
    device.multiprocessors = 2
    return device


@pytest.mark.parametrize("dtype", "fdFD")
def test_factor_solve_refactor(device, dtype):
    A = circuit(dtype)
    n = A.shape[0]
    factor = divided(A, n - 30)
    assert factor.engine == "crisscross"
    assert factor.stats.division == n - 30
    check_solves(A, factor, ((), (5,)))
    scaled = A.copy()
    scaled.data *= 3
    device.counts.clear()
    factor.refactor(scaled.data)
    assert device.counts == {**device.counts, "replay": 1, "factor_crisscross": 1}
    assert sum(device.counts.get(kernel, 0) for kernel in ("factor_warps", "factor_small", "factor_blocks")) == 1
    check_solves(scaled, factor)
    assert factor.stats.n_refactor == 1
    assert factor.stats.n_repivoted == factor.stats.n_refinement == 0
    assert "crisscross: asked for by name" in factor.explain()


@pytest.mark.parametrize("trailing", [1, 17, 60])
def test_trailing_blocks_of_any_size(device, cupy, trailing):
    A = random_matrix(60, "d")
    check_solves(A, check_trailing_block(cupy, A, trailing, [(), (5,)]), ((), (5,)))


def test_by_levels(device):
    A, b = circuit("d"), rhs(circuit("d").shape[0])
    x = divided(A, A.shape[0] - 30).solve(b)
    device.counts.clear()
    assert divided(A, A.shape[0] - 30, Tuning(by_levels=True, grouped=False)).solve(b).tobytes() == x.tobytes()
    assert device.counts["factor_crisscross"] > 1


def test_without_a_trailing_block_it_is_sflu(device):
    A = circuit("d")
    b = rhs(A.shape[0])
    x = divided(A, A.shape[0]).solve(b)
    assert x.tobytes() == gs.splu(A, engine="sflu").solve(b).tobytes()


def test_bits_repeat(device, cupy):
    A = circuit("d")

    def other_order():
        device.seed = 3

    check_bits_repeat(cupy, lambda A: divided(A, A.shape[0] - 40), A, 1, (2,), other_order)


def test_trailing_blocks_that_become_singular(device):
    """The CPU engine decides about what the trailing block's pivots cannot."""
    A = canonical(sp.block_diag([np.diag(np.arange(1.0, 9)), np.ones((4, 4)) + np.diag([1.0, 2, 3, 4])], "csc"))
    factor = divided(A, 8, ordering="natural")
    check_solves(A, factor)
    values = A.data.copy()
    values[8:] = 1.0
    with pytest.raises(RuntimeError, match="exactly singular"):
        factor.refactor(values)
    check_solves(A, factor)


@pytest.mark.parametrize("trailing", [90, 150])
def test_the_ends_of_all_chains_are_in_the_trailing_block(device, trailing):
    A = canonical(gallery.named("rlc:12x12"))
    n = A.shape[0]
    here = gs.splu(A, engine="sflu", ordering="nd")._core._recorded.program.plan
    factor = divided(A, n - trailing, ordering="nd")
    there = factor._core._recorded.program.plan
    assert there.nnz == here.nnz and there.flops == here.flops
    moved = np.argsort(here.col_perm)[there.col_perm]  # numbers in the plan that was given
    assert (np.diff(moved[: n - trailing]) > 0).all() and (np.diff(moved[n - trailing :]) > 0).all()
    assert (np.diff(moved) < 0).any()  # there was something to move
    _, last, _ = finishing_times(here, trailing_costs(shipped()), for_core())
    assert last[moved[: n - trailing]].max() <= last[moved[n - trailing :]].min()
    assert there.level[: n - trailing].max() < here.n_levels - 1
    check_solves(A, factor)


def test_new_pivots_are_noticed(device):
    """Pivots are compared with those that were given, not with their order here."""
    A = canonical(gallery.named("rlc:12x12"))
    program = divided(A, A.shape[0] - 90, ordering="nd")._core._recorded.program
    names = ("row_perm", "col_perm", "row_scale", "col_scale")
    given = dict(zip(names, program._pivots, strict=True))
    assert (given["col_perm"] != program.plan.col_perm).any()

    def factor(row_perm, col_perm, row_scale, col_scale):
        symbolic = SimpleNamespace(row_scale=row_scale, col_scale=col_scale)
        return SimpleNamespace(pivot_rows=row_perm, pivot_columns=col_perm, symbolic=symbolic)

    assert program.has_pivots_of(factor(**given))
    assert not program.has_pivots_of(factor(**{**given, "row_perm": given["row_perm"][::-1]}))
    assert not program.has_pivots_of(factor(**{**given, "row_scale": 2 * given["row_scale"]}))


def test_division_is_chosen_and_told(device):
    device.multiprocessors = 132
    A = canonical(gallery.named("circuit:30x30"))
    n = A.shape[0]
    factor = gs.splu(A, engine="crisscross")
    stats, curves = factor.stats, factor._core._recorded.program.curves
    assert n // 2 < stats.division < n
    assert stats.division == curves.division[np.argmin(curves.sparse + curves.dense)]
    parts = stats.predicted_sparse_seconds + stats.predicted_dense_seconds
    assert parts == stats.predicted_factor_seconds == pytest.approx(curves.total.min())
    assert f"a dense trailing block of {n - stats.division}" in factor.explain()
    check_solves(A, factor)


@pytest.mark.parametrize("trailing", [0, 150, 600])
def test_memory_is_counted(device, trailing):
    A = canonical(gallery.named("circuit:25x25"))
    before = device.used
    factor = divided(A, A.shape[0] - trailing)
    factor.solve(rhs(A.shape[0]))
    used, needed = device.used - before, factor._core._recorded.program.needed_bytes
    assert used <= needed <= 1.3 * used
