"""What must not change is as it was recorded."""

import pytest

from support.processes import run


@pytest.mark.parametrize(
    "part",
    ["errors", "calls", "signatures", *(pytest.param(part, marks=pytest.mark.thorough) for part in ("bits", "device"))],
)
def test_records(part):
    printed = run("import runpy; runpy.run_module('frozen', run_name='__main__')", "--check", part, timeout=600)
    if "nothing compared" in printed:
        pytest.skip(printed.strip())
