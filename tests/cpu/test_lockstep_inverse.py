"""Entries of the inverses of systems in lockstep on the processor: as by NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import _core, gallery
from gpusplu.engines import registry
from support.cpu_lockstep import lockstep, near
from support.dense_batch import DenseBatches, systems_like
from support.small_matrices import EPS, canonical, phased, random_matrix

DTYPES = "fdFD"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["random", "mesh", "definite", "path"])
def test_entries_of_the_inverse(name, dtype):
    """LU and Cholesky, with fronts of all sizes, one or many children, and in several trees; threads change no bit."""
    shifted = [gallery.poisson(*sides) + 2 * sp.eye_array(np.prod(sides)) for sides in ((9, 12), (200,))]
    A = {
        "random": lambda: random_matrix(90, dtype, density=0.05),
        "mesh": lambda: canonical(sp.block_diag([phased(shifted[0], dtype)] * 2)),
        "definite": lambda: phased(gallery.elasticity(4, 3, 3), dtype, hermitian=True),
        "path": lambda: phased(shifted[1], dtype),
    }[name]()
    cholesky = name == "definite"
    values = np.array([A.data * scale for scale in (1, 1.5, 2)] * 4, A.dtype)
    if not cholesky:
        values = near(A, 12)
    batch = lockstep(A, 12, cholesky)
    batch.refactor(values)
    entries, errors = batch.inverse_on_pattern()
    assert entries.shape == values.shape and (errors < 100 * EPS[dtype]).all()
    columns = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    for k, one in enumerate(values):
        inverse = np.linalg.inv(sp.csc_array((one, A.indices, A.indptr)).toarray().astype(np.result_type(dtype, "d")))
        assert abs(entries[k] - inverse[columns, A.indices]).max() < 200 * EPS[dtype] * abs(inverse).max()
    before = _core.num_threads()
    _core.set_num_threads(3)
    np.testing.assert_array_equal(batch.inverse_on_pattern()[0], entries)
    _core.set_num_threads(before)


@pytest.mark.parametrize(("dtype", "largest"), [("f", 50), ("D", 450)])
def test_entries_of_the_inverse_of_rows_and_columns_of_all_sizes(dtype, largest):
    A = random_matrix(60, dtype, density=0.1)
    columns = np.repeat(np.arange(60), np.diff(A.indptr))
    powers = np.random.default_rng(0).integers(-largest, largest, (2, 60))
    scale = 2.0 ** (powers[0, A.indices] + powers[1, columns])
    plain, scaled = lockstep(A, 1), lockstep(sp.csc_array(((A.data * scale).astype(dtype), A.indices, A.indptr)), 1)
    plain.refactor(A.data[None])
    scaled.refactor((A.data * scale).astype(dtype)[None])
    expected = plain.inverse_on_pattern()[0]
    assert abs(scaled.inverse_on_pattern()[0] * scale - expected).max() < 200 * EPS[dtype] * abs(expected).max()


def test_entries_of_the_inverse_that_the_common_pivots_spoil():
    """A system whose entries do not check themselves gets pivots of its own."""

    class Spoilt(DenseBatches):
        name = "spoilt"

        def batch(self, problem, analysis, count):
            batch = super().batch(problem, analysis, count)
            found = batch.inverse_on_pattern
            batch.inverse_on_pattern = lambda: (2 * found()[0], np.array([0, 1e-3, 0]))
            return batch

    A = canonical(sp.eye_array(30) * 10 + random_matrix(30))
    values = systems_like(A, 3)
    with registry.registered(Spoilt()):
        entries = gs.splu_batch(A, values, engine="spoilt").inverse_on_pattern()
    expected = gs.splu_batch(A, values).inverse_on_pattern()
    np.testing.assert_allclose(entries[[0, 2]], 2 * expected[[0, 2]], rtol=1e-9)
    np.testing.assert_allclose(entries[1], expected[1], rtol=1e-9)


@pytest.mark.parametrize("dtype", "dD")
def test_entries_of_the_inverse_beside_small_ones_of_the_matrix(dtype):
    """Large multipliers spoil them, and the ones do not tell."""
    A = sp.csc_array(np.array([[4, 1], [1, 4]], dtype))
    values = np.tile(A.data, (3, 1))
    values[1] = [3e-7, 1.1, 1, 7e-7]
    batch = gs.splu_batch(A, values)
    inverse = np.linalg.inv(values[1].reshape(2, 2).T)
    assert abs(batch.inverse_on_pattern()[1].reshape(2, 2) - inverse).max() < 1e-14
