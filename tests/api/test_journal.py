"""What is told of a call: by the logger, by verbose=, and never unasked."""

import logging
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common import listeners
from gpusplu.common.timing import backward_error
from support.small_matrices import random_matrix, rhs, spd_matrix

A = random_matrix()
B = rhs(60)


@pytest.fixture
def log(caplog):
    """Messages of the logger, all of them."""
    caplog.set_level(logging.DEBUG, "gpusplu")
    return caplog


def of_phase(log, phase):
    """The one record of a phase."""
    (record,) = [record for record in log.records if record.phase == phase]
    return record


def test_a_line_a_phase(log):
    lu = gs.splu(A)
    for phase in ("canonicalize", "analyze", "factor"):
        record = of_phase(log, phase)
        assert record.levelno == logging.INFO and record.seconds == lu.stats.seconds[phase]
        assert record.getMessage().startswith(f"{phase} took ")
    assert "60 x 60" in of_phase(log, "canonicalize").getMessage()
    factored = of_phase(log, "factor")
    assert factored.predicted > 0 and " predicted: " in factored.getMessage()
    assert any(message.startswith("engine cpu: engine='auto' and ") for message in log.messages)
    assert any(message.startswith(f"ordering {lu.stats.ordering}") for message in log.messages)
    log.clear()
    lu.refactor(A.data)
    x = lu.solve(B)
    assert (of_phase(log, "refactor").levelno, of_phase(log, "refactor").predicted > 0) == (logging.DEBUG, True)
    solved = of_phase(log, "solve").getMessage()
    assert f"1 right-hand side, backward error {lu.backward_error:.1e}" in solved
    assert backward_error(A, x, B) < 1e-14


WAYS = {
    "splu": lambda **how: gs.splu(A, **how),
    "splu, the long way": lambda **how: gs.splu(A, ordering="amd", **how),
    "factorized": lambda **how: gs.factorized(A, **how),
    "spsolve": lambda **how: gs.spsolve(A, B, **how),
    "spsolve, sparse": lambda **how: gs.spsolve(A, sp.eye_array(60, 3, format="csc"), **how),
    "cholesky": lambda **how: gs.cholesky(spd_matrix(), **how),
    "ldlt": lambda **how: gs.ldlt(gallery.kkt(60, 20, 0.1), **how),
    "analyze": lambda **how: gs.analyze(A, **how),
    "splu_batch": lambda **how: gs.splu_batch(A, np.stack([A.data, 2 * A.data]), **how),
    "cholesky_batch": lambda **how: gs.cholesky_batch(spd_matrix(), [spd_matrix().data], **how),
}


@pytest.mark.parametrize("way", WAYS)
def test_verbose_prints_the_same(way, caplog, capsys):
    caplog.set_level(logging.INFO, "gpusplu")
    WAYS[way](verbose=1)
    printed = capsys.readouterr().out.splitlines()
    assert printed == [f"gpusplu: {message}" for message in caplog.messages]
    phases = [record.phase for record in caplog.records if record.phase]
    assert phases == (["canonicalize", "analyze"] if way == "analyze" else ["canonicalize", "analyze", "factor"])
    WAYS[way]()
    assert capsys.readouterr().out == ""


def test_verbose_of_what_follows(capsys):
    loud, quiet = gs.splu(A, verbose=2), gs.splu(A, verbose=1)
    capsys.readouterr()
    quiet.refactor(A.data), quiet.solve(B)
    assert capsys.readouterr().out == ""
    loud.refactor(A.data), loud.solve(np.stack([B, B], axis=1))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["refactor", "solve"] and "2 right-hand sides" in lines[1]


def test_analyses_that_are_remembered(log):
    for factor in (gs.splu, gs.cholesky):
        matrix = spd_matrix()
        factor(matrix)
        log.clear()
        factor(matrix)
        call = gs.cache_info().hits + gs.cache_info().misses - 1
        assert log.messages[0].startswith(f"analysis of call {call} reused")


def test_analyses_that_are_dropped(log):
    def other_values(**how):
        matrix = gallery.power_mesh(8, 8)
        lu = gs.splu(matrix, **how)
        rng = np.random.default_rng(0)
        matrix.data = np.exp(rng.normal(scale=30, size=matrix.nnz)) * rng.choice([-1, 1], matrix.nnz)
        log.clear()
        return lu, gs.splu(matrix, **how)

    _, lu = other_values(ordering="amd")
    assert lu.stats["analysis"] == "made for this matrix"
    assert log.messages[0] == "analysis of call 1 dropped: its matching does not suit these values"
    gs.cache_clear()
    _, lu = other_values()
    assert lu.stats["analysis"] == "made for this matrix"
    assert log.messages[0].startswith("analysis of call 1 dropped: ")


def test_what_had_to_be_mended(log):
    matrix = gallery.circuit(12, 12).matrix()
    lu = gs.splu(matrix)
    log.clear()
    lu.refactor(np.random.default_rng(0).normal(size=matrix.nnz) ** 9)
    assert lu.stats.n_reanalyzed + lu.stats.n_repivoted == 1
    assert [r.levelno for r in log.records] == [logging.DEBUG, logging.INFO]
    assert log.messages[1] in (
        "matched and ordered again with newer values: 1",
        "pivots chosen anew by threshold partial pivoting: 1",
    )


def test_ldlt_that_is_left_for_lu(log):
    matrix = gallery.poisson(30, 30)
    lu = gs.splu(matrix)
    assert lu.stats.symmetric
    log.clear()
    lu.refactor(matrix.data * np.random.default_rng(0).uniform(0.9, 1.1, matrix.nnz))
    assert not lu.stats.symmetric
    assert any("LDL^T was left for LU" in message for message in log.messages)


def test_mixed_precision_that_is_given_up(log):
    lu = gs.splu(A, precision="mixed")
    log.clear()
    lu.refactor(1e40 * A.data)
    (record,) = [record for record in log.records if record.levelno == logging.WARNING]
    assert record.getMessage() == (
        "mixed precision is given up, and the factor made in double precision: "
        "values are out of the range of single precision"
    )


def test_systems_of_a_batch(log):
    values = np.stack([A.data, 0 * A.data, 2 * A.data])
    gs.splu_batch(A, values)
    assert of_phase(log, "factor").getMessage().endswith("3 systems side by side")
    assert "of 3 systems 2 right, 1 singular" in log.messages


def test_threads_are_told_of_their_own_calls(capsys):
    def quiet():
        for _ in range(20):
            gs.splu(spd_matrix()).solve(np.ones(50))

    other = threading.Thread(target=quiet)
    other.start()
    for _ in range(20):
        gs.splu(A, verbose=1)
    other.join()
    assert "50 x 50" not in capsys.readouterr().out
    assert listeners.caller() is listeners.NOBODY


@pytest.mark.parametrize("verbose", [-1, "yes", 1.5, None])
def test_verbose_is_a_number(verbose):
    with pytest.raises(ValueError, match=r"verbose=.* must be 0, 1 or 2"):
        gs.splu(A, verbose=verbose, progress=False)


def test_progress_is_a_function_or_not():
    with pytest.raises(TypeError, match="progress='yes' must be True, False, None or a function"):
        gs.splu(A, progress="yes")
    gs.splu(A, verbose=True, progress=print)
