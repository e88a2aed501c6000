"""pytest plugin: SciPy's own tests with gpusplu in SciPy's place (loaded by test_scipy_suite.py with -p)."""

import sys

import gpusplu

gpusplu.install()


def pytest_sessionfinish(session):
    """The suite says nothing about us unless its functions were ours."""
    module = sys.modules["scipy.sparse.linalg._dsolve.tests.test_linsolve"]
    for name in ("splu", "spsolve", "factorized"):
        assert hasattr(getattr(module, name), "__wrapped__"), f"{name} is SciPy's own"
