"""What tests of what users hold share."""

import pytest

from gpusplu import compat
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
