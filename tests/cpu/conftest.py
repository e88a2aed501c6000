"""Kernels of each instruction set that this build has and this machine can run."""

import pytest

from gpusplu import _core_testing


def is_built(level):
    _core_testing.set_simd_level(level)
    found = _core_testing.simd_level()
    _core_testing.set_simd_level(0)
    return found == level


LEVELS = [level for level in (0, 2, 3, 4) if is_built(level)]


@pytest.fixture(params=LEVELS, ids=lambda level: f"v{level}")
def level(request):
    _core_testing.set_simd_level(request.param)
    yield request.param
    _core_testing.set_simd_level(0)
