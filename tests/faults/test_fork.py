"""A child forked while other threads are in the core: it must work, or say why not, and never hang."""

import pytest

from support.processes import run

THREADS = {"GPUSPLU_NUM_THREADS": "4"}
BEGIN = "import numpy as np, gpusplu as gs\nfrom faults.forking import *\n"


@pytest.mark.parametrize("matrix", ["ELASTIC", "CIRCUIT"])
def test_child_factors_beside_busy_threads(matrix):
    run(
        BEGIN + f"with busy(lambda: solves({matrix})):\n"
        f"    answers = [child(lambda: solves({matrix})) for _ in range(10)]\n"
        "assert set(answers) == {'True'}, answers",
        **THREADS,
    )


def test_child_uses_a_factor_that_a_thread_solves_with():
    run(
        BEGIN + "lu, b = gs.splu(ELASTIC), np.ones(ELASTIC.shape[0])\n"
        "def use():\n"
        "    x = lu.solve(b)\n"
        "    lu.refactor(2 * ELASTIC.data)\n"
        "    return np.allclose(2 * lu.solve(b), x), lu.stats['n_refactor']\n"
        "with busy(lambda: lu.solve(b)):\n"
        "    answers = [child(use) for _ in range(10)]\n"
        "assert set(answers) == {'(True, 1)'}, answers",
        **THREADS,
    )


def test_child_is_told_of_a_factor_that_a_thread_was_changing():
    answers = run(
        BEGIN + "lu, b = gs.splu(ELASTIC), np.ones(ELASTIC.shape[0])\n"
        "values = ELASTIC.data.copy()\n"
        "def use():\n"
        "    global lu\n"
        "    try:\n"
        "        return bool(abs(ELASTIC @ lu.solve(b) - 1).max() < 1e-9)\n"
        "    except RuntimeError as error:\n"
        "        told = str(error)\n"
        "    lu = None\n"
        "    return told if solves() else 'no further factorization'\n"
        "with busy(lambda: lu.refactor(values), 1):\n"
        "    print('\\n'.join(child(use) for _ in range(20)))",
        **THREADS,
    ).splitlines()
    told = [answer for answer in answers if "half changed" in answer]
    assert told
    assert set(answers) - set(told) <= {"True"}


def test_child_waits_for_no_thread_that_calls_systems_in_lockstep():
    run(
        BEGIN + "batch = gs.splu_batch(CIRCUIT, np.tile(CIRCUIT.data, (9, 1)))\n"
        "b = np.ones((9, CIRCUIT.shape[0]))\n"
        "x = batch.solve(b)\n"
        "with busy(batch.slogdet):\n"
        "    answers = [child(lambda: np.array_equal(batch.solve(b), x)) for _ in range(10)]\n"
        "assert all('half changed' in answer or answer == 'True' for answer in answers), answers",
        **THREADS,
    )


def test_child_is_told_of_systems_in_lockstep_that_a_thread_was_changing():
    answers = run(
        BEGIN + "values, b = np.tile(CIRCUIT.data, (64, 1)), np.ones((64, CIRCUIT.shape[0]))\n"
        "batch = gs.splu_batch(CIRCUIT, values)\n"
        "with busy(lambda: batch.refactor(values), 1):\n"
        "    print('\\n'.join(child(lambda: abs(batch.solve(b)).max() < np.inf) for _ in range(20)))",
        **THREADS,
    ).splitlines()
    assert any("half changed" in answer for answer in answers), answers
    assert all("half changed" in answer or answer == "True" for answer in answers), answers


def test_a_child_forks_again():
    run(
        BEGIN + "def nested():\n"
        "    with busy(solves):\n"
        "        return child(solves), child(solves)\n"
        "with busy(solves):\n"
        "    assert child(nested) == str(('True', 'True'))",
        **THREADS,
    )


def test_child_uses_patterns_that_threads_use():
    """Whatever threads had taken at the fork, the child finds patterns or makes them anew."""
    run(
        BEGIN + "b = np.ones(ELASTIC.shape[0])\n"
        "def use():\n"
        "    found = []\n"
        "    for k in range(1, 4):\n"
        "        x = gs.spsolve(k * ELASTIC, b)\n"
        "        found.append(bool(abs(k * (ELASTIC @ x) - 1).max() < 1e-9))\n"
        "    gs.cache_limit(entries=1)\n"
        "    return all(found) and solves(CIRCUIT), gs.cache_info().hits > 0\n"
        "use()\n"
        "gs.cache_limit(entries=64)\n"
        "with busy(lambda: gs.spsolve(ELASTIC, b)), busy(lambda: solves(CIRCUIT), 1):\n"
        "    answers = [child(use) for _ in range(10)]\n"
        "assert set(answers) == {'(True, True)'}, answers",
        **THREADS,
    )
