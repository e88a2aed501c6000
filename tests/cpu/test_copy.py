"""Copying by several threads."""

import numpy as np
import pytest

from gpusplu import _core


@pytest.mark.parametrize("count", [0, 1, 1000, (1 << 15) - 1, (1 << 15) + 3, 300_001])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_byte_arrives(count, threads):
    before = _core.num_threads()
    _core.set_num_threads(threads)
    try:
        source = np.random.default_rng(count).normal(size=count)
        source.flags.writeable = False
        to = np.zeros(count + 8)
        _core.copy(to[:count], source)
    finally:
        _core.set_num_threads(before)
    np.testing.assert_array_equal(to[:count], source)
    assert (to[count:] == 0).all()


def test_sizes_have_to_agree():
    with pytest.raises(ValueError, match="different sizes"):
        _core.copy(np.zeros(3), np.zeros(4))
    with pytest.raises(TypeError):
        _core.copy(np.zeros(8)[::2], np.zeros(4))
