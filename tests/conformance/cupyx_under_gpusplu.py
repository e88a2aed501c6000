"""pytest plugin: CuPy's own tests with gpusplu in CuPy's place, and in SciPy's place SciPy, to compare with.

Loaded by test_scipy_suite.py with -p, on a machine with a GPU. GPUSPLU_TESTED_ENGINE names an engine other than "auto".
"""

import os
from collections import Counter

import pytest

import gpusplu
from gpusplu.common import scipy_names as _scipy
from gpusplu.dispatch.selection import read_request
from gpusplu.install import compat

ENGINE = os.environ.get("GPUSPLU_TESTED_ENGINE", "auto")
answered = Counter()


def scipys(original, *args, **kwargs):
    return original(*args, **kwargs)


for name in _scipy.NAMES:
    setattr(compat, name, scipys)
gpusplu.install()  # before CuPy is there


def counted(module, name):
    """Count what a function of ours returns without an error."""
    function = getattr(module, name)

    def counting(*args, **kwargs):
        result = function(*args, **kwargs)
        answered[name] += 1
        return result

    setattr(module, name, counting)


def collecting(check_availability, session):
    """The function that says so of everything as long as tests are collected."""
    return lambda name: not session.testscollected or check_availability(name)


def pytest_sessionstart(session):
    import cupyx.scipy.sparse.linalg  # noqa: F401
    from cupyx import cusparse

    # CuPy leaves out its tests of splu where cuSPARSE has no csrsm2, which ours does not need.
    pytest.MonkeyPatch().setattr(cusparse, "check_availability", collecting(cusparse.check_availability, session))

    from gpusplu.factors import solving
    from gpusplu.install import compat_cupyx

    compat_cupyx.automatic = lambda: read_request(ENGINE)
    counted(compat_cupyx, "factor_lu")
    counted(solving, "solve_stored")


def pytest_sessionfinish(session):
    """The suite says nothing about us unless its functions were ours."""
    import cupyx.scipy.sparse.linalg as spla

    assert all(hasattr(getattr(spla, name), "__wrapped__") for name in _scipy.NAMES)
    assert answered["factor_lu"] + answered["solve_stored"] > 0, "CuPy answered itself"
