"""Patterns that are remembered of engines on a device."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error, other_values
from gpusplu.dispatch import patterns
from gpusplu.engines.problem import Request
from gpusplu.factors import pipeline
from support.small_matrices import EPS, rhs

ENGINES = ("glu", "sflu", "crisscross", "supernodal")
pytestmark = pytest.mark.usefixtures("cupy", "device")


def accurate(A, x, b):
    assert backward_error(A, x, b) < 100 * EPS[A.dtype.char]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_analysis_is_found_again(engine):
    A = gallery.named("circuit:6x6")
    B, b = other_values(A, False), rhs(A.shape[0])
    first = gs.splu(A, engine=engine)
    x = first.solve(b)
    second = gs.splu(B, engine=engine)
    assert second.stats["analysis"] == "analysis of call 1 reused"
    assert second.engine == engine
    accurate(B, second.solve(b), b)
    np.testing.assert_array_equal(first.solve(b), x)
    assert gs.splu(A).stats["analysis"] == "made for this matrix"  # for another engine


@pytest.mark.parametrize("engine", ENGINES)
def test_a_factor_that_nobody_sees_is_refactored(engine):
    A = gallery.named("circuit:6x6")
    b, request, refactored, sizes, held = rhs(A.shape[0]), Request(engine, "tested", 0), [], [], []

    def solve(lu):
        refactored.append(lu.stats["n_refactor"])
        x = lu.solve(b)
        sizes.append(lu.stats.bytes)
        return x

    for k in range(4):
        A.data *= 1.5
        accurate(A, pipeline.solve_single_use(A, pipeline.DEFAULTS, request, solve), b)
        assert (gs.cache_info().hits, gs.cache_info().misses) == (k, 1)
        held.append(gs.cache_info().bytes)
    assert refactored == [0, 0, 1, 2]
    assert held[1] - held[0] == sizes[1] > 0  # the factor is counted


def test_plans_and_programs_are_counted():
    A = gallery.named("poisson:8x8")
    gs.splu(A)
    here = gs.cache_info().bytes
    gs.cache_clear()
    symbolic = gs.splu(A, engine="supernodal").symbolic
    program = symbolic.parts()[0].memo.get(("supernodal.program", A.dtype, True))
    assert gs.cache_info().bytes > here
    assert gs.cache_info().bytes > patterns.held_bytes(program) > 0
    assert patterns.held_bytes(program) > program.plan_bytes


def test_cholesky_is_found_again():
    A = gallery.named("poisson:8x8")
    b = rhs(64)
    for k in range(3):
        ch = gs.cholesky(A * (k + 1), engine="supernodal")
        accurate(A * (k + 1), ch.solve(b), b)
    assert (gs.cache_info().hits, gs.cache_info().misses) == (2, 1)
