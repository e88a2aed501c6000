"""Every public docstring has an example; these, and the programs in examples, give what they say.

Examples find ``np``, ``sp`` (scipy.sparse) and ``gs`` (gpusplu) imported.
"""

import doctest
import importlib
import importlib.util
import inspect
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from frozen.signatures import INTERNAL

#: Modules whose ``__all__`` is public, but for `gpusplu.distributed`, whose examples need ranks of MPI.
MODULES = ("gpusplu", "gpusplu.gallery", "gpusplu.plotting", "gpusplu.torch", "gpusplu.jax")
NEEDS = {"gpusplu.plotting": "matplotlib", "gpusplu.torch": "torch", "gpusplu.jax": "jax"}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def public(module):
    """What has a docstring, by name: the module, its functions and classes, and methods, those of bases of ours too."""
    yield module.__name__, module
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.ismodule(thing) or not callable(thing):
            continue
        yield name, thing
        if inspect.isclass(thing) and not issubclass(thing, Exception):
            for member in dir(thing):
                value = inspect.getattr_static(thing, member)
                home = getattr(value, "__module__", None) or ""
                if inspect.isfunction(value) and home.startswith("gpusplu") and not member.startswith("_"):
                    yield f"{name}.{member}", value


def require(module):
    """What a module needs; pictures are not shown."""
    if module in NEEDS:
        needed = pytest.importorskip(NEEDS[module])
        if module == "gpusplu.plotting":
            needed.use("agg")


@pytest.mark.parametrize("module", MODULES)
def test_every_docstring_has_an_example(module):
    require(module)
    without = [
        name
        for name, thing in public(importlib.import_module(module))
        if ">>> " not in (inspect.getdoc(thing) or "") and name.partition(".")[2] not in INTERNAL | {"canonical"}
    ]
    assert without == []


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
@pytest.mark.parametrize("module", MODULES)
def test_examples(module):
    require(module)
    runner, said = doctest.DocTestRunner(verbose=False, optionflags=FLAGS), []
    examples = {id(inspect.unwrap(thing)): (name, thing) for name, thing in public(importlib.import_module(module))}
    for name, thing in examples.values():
        names = {"np": np, "sp": sp, "gs": gs, "__name__": "__main__"}
        text = inspect.getdoc(thing) or ""
        runner.run(doctest.DocTestParser().get_doctest(text, names, f"{module}: {name}", None, 0), out=said.append)
        gs.cache_clear()
    if module == "gpusplu.plotting":
        from matplotlib import pyplot

        pyplot.close("all")
    assert runner.tries > 5
    assert runner.failures == 0, "".join(said)


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
