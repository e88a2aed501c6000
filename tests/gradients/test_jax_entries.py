"""product and pairs as GPUs do them, in JAX's own functions, beside those of the host."""

import numpy as np
import pytest

from support.jaxes import close, gj, jax, jnp, structure

N, NBATCH = 5, 3
RNG = np.random.default_rng(0)
# Of a matrix with a duplicate, and with two places of padding at the end.
ROWS, COLUMNS = np.array([0, 0, 1, 2, 2, 2, 4]), np.array([0, 3, 1, 0, 2, 2, 1])
INDEX = {
    "bcsr": (np.append(COLUMNS, [7, 1]), np.array([0, 2, 3, 6, 6, 7])),
    "bcoo": (np.append(np.stack([ROWS, COLUMNS], axis=1), [[N, N], [1, N]], axis=0),),
}
SIZE = 9


def draw(*shape):
    return RNG.standard_normal(shape)


def both(name, layout, traced, first, second, batched_index=False, **options):
    """What the two make of operands."""
    index = tuple(one.astype(np.int32) for one in INDEX[layout])
    if batched_index:
        index = tuple(np.stack([one] * NBATCH) for one in index)
    given = {
        "structure": None if traced else structure.Structure(N, layout, index),
        "n": N,
        "layout": layout,
        **options,
    }
    operands = (first, *(index if traced else ()), second)
    (expected,) = getattr(gj.host, name)(*operands, **given)
    function = jax.jit(lambda *arrays: getattr(gj.primitives, name)(*arrays, **given)[0])
    return function(*map(jnp.asarray, operands)), expected


SHAPES = [((), ()), ((NBATCH,), (NBATCH,)), ((NBATCH,), ())]


@pytest.mark.parametrize("layout", INDEX)
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(("batch", "batch_of_x"), SHAPES, ids=str)
@pytest.mark.parametrize("transpose", [False, True])
def test_product(layout, traced, batch, batch_of_x, transpose):
    values = draw(*batch, SIZE)
    values[..., -2:] = np.nan  # padding
    assert close(*both("product", layout, traced, values, draw(*batch_of_x, 2, N), transpose=transpose))


@pytest.mark.parametrize("layout", INDEX)
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("batch", [(), (NBATCH,)], ids=str)
def test_pairs(layout, traced, batch):
    assert close(*both("pairs", layout, traced, draw(*batch, 2, N), draw(*batch, 2, N)))


@pytest.mark.parametrize("layout", INDEX)
def test_a_pattern_for_each_system(layout):
    first, second = draw(NBATCH, SIZE), draw(NBATCH, 2, N)
    assert close(*both("product", layout, True, first, second, batched_index=True, transpose=False))
    assert close(*both("pairs", layout, True, second, second, batched_index=True))
