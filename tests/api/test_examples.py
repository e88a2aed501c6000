"""The examples of the documentation run, and their results are what they say."""

import importlib.util
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


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
