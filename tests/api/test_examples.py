"""The examples of the documentation run, and their results are what they say."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import gpusplu as gs

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    """The module of an example."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_monte_carlo_power_flow(capsys):
    V, Y, demand = example("monte_carlo_power_flow").main(scenarios=20, side=6)
    injected = V * np.conj(V @ Y.T)
    np.testing.assert_allclose(injected[:, 1:], -demand, atol=1e-8)
    assert (V[:, 0] == 1).all() and 0.5 < np.abs(V).min() < 1
    assert "20 scenarios of 36 buses in" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:Sparse (CSR tensor support|invariant checks)")
def test_fit_a_circuit(capsys):
    pytest.importorskip("torch", reason="torch is not installed")
    misfits, error, made = example("fit_a_circuit").main(side=3, steps=60)
    assert misfits[-1] < 1e-5 * misfits[0]
    assert error < 0.02
    assert made == 8 * len(misfits)
    assert "none of them for a gradient" in capsys.readouterr().out


@pytest.mark.thorough
def test_heat_inverse_problem(capsys):
    pytest.importorskip("jax.numpy", reason="needs JAX: pip install gpusplu[jax]")
    before = gs.factorization_count()
    found, true, losses = example("heat_inverse_problem").main(side=10, iterations=100)
    assert gs.factorization_count() - before <= 101  # one an iteration, and one for what was measured
    assert losses[-1] < 1e-3 * losses[0]
    assert abs(found - true).reshape(10, 10)[1:-1, 1:-1].max() < 0.2
    assert "100 conductivities from" in capsys.readouterr().out
