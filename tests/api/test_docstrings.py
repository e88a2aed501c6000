"""Every public docstring has an example, and every example gives what it says.

Examples find ``np``, ``sp`` (scipy.sparse) and ``gs`` (gpusplu) imported.
"""

import doctest
import importlib
import inspect

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
