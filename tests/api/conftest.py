"""What tests of what users hold share."""

import numpy as np
import pytest
import scipy.sparse as sp

from gpusplu import plotting
from gpusplu.install import compat
from support import asv_bench_package  # noqa: F401 (before tests import asv_bench)
from support.scipy_names import CALLS


@pytest.fixture
def asked(monkeypatch):
    """Names of SciPy's functions that were answered by ours."""
    names = []
    for name in CALLS:
        ours = getattr(compat, name)
        monkeypatch.setattr(compat, name, lambda *a, name=name, ours=ours, **k: (names.append(name), ours(*a, **k))[1])
    return names


@pytest.fixture(scope="module")
def structure():
    """Of the columns of a small matrix that is not symmetric: for numbers, and for pictures of them."""
    rng = np.random.default_rng(1)
    A = sp.random_array((60, 60), density=3 / 60, rng=rng) + sp.diags_array(4 + rng.random(60))
    return plotting.column_structure(sp.csc_array(A), ordering="amd")
