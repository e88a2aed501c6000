"""The glu engine on a CUDA device."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.engines.glu.program import MODES
from support.column_engines import check_bad_pivots, check_mode, glu, on_device
from support.small_matrices import EPS, canonical, random_matrix, rhs

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("cupy")]


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("mode", [None, *MODES])
@pytest.mark.parametrize("name", ["circuit:30x30", "random"])
def test_modes(mode, dtype, name):
    A = random_matrix(400, dtype) if name == "random" else canonical(gallery.named(name)).astype(dtype)
    check_mode(A, mode, 20, [(3,)])


@pytest.mark.parametrize(
    "name", ["add20", "adder_dcop_05", "bayer10", "case3375wp_nrjac", "memplus", "rajat19", "sherman5"]
)
def test_real_matrices(real_matrix, name):
    A = canonical(real_matrix(name)).astype("d")
    factor = gs.splu(A, engine="glu")
    b = rhs(A.shape[0], "d")
    for trans, op in (("N", A), ("T", A.T)):
        assert backward_error(op, factor.solve(b, trans), b) < 100 * EPS["d"]
    A.data *= np.random.default_rng(0).uniform(0.9, 1.1, A.shape[0])[A.indices]  # the pivots stay good
    factor.refactor(A.data)
    assert backward_error(A, factor.solve(b), b) < 100 * EPS["d"]
    assert factor.stats.n_repivoted == 0
    assert on_device(factor)


@pytest.mark.parametrize("name", ["add20_seq", "mem_plus_seq", "voter_seq"])
def test_sequences(real_sequence, name):
    """Newton steps of a circuit, whose pivots may have to change on the way."""
    indptr, indices, shape, data = real_sequence(name)
    A = sp.csc_array((data[0].astype("d"), indices, indptr), shape=shape)
    factor, b = gs.splu(A, engine="glu"), rhs(shape[0], "d")
    for values in data[:: max(1, len(data) // 10)]:
        A.data = values.astype("d")
        factor.refactor(A.data)
        assert backward_error(A, factor.solve(b), b) < 1e-12
    assert on_device(factor)


def test_bad_pivots_are_chosen_anew():
    check_bad_pivots(glu, random_matrix(300), 3)
