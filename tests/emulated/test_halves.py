"""Schur complements and changes of low rank of factors on an emulated device."""

import numpy as np
import pytest
import scipy.sparse as sp

from gpusplu import gallery
from gpusplu.engines.supernodal import complement
from gpusplu.engines.supernodal.plan import Limits
from support.halves import (
    KINDS,
    analyzed,
    check_schur,
    check_widened,
    dense_schur,
    near_definite,
    two_grids,
)
from support.small_matrices import canonical, dtypes, spd_matrix
from support.solves import on_host


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("kind", KINDS)
def test_large_fronts_and_several_roots(cupy, kind):
    A, indices = two_grids(kind)
    check_schur(cupy, A, indices, kind)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("diagonal", [1e-14, 1 + 1e-6], ids=["tiny", "growing"])
@pytest.mark.parametrize("kind", ["lu", "ldlt"])
def test_pivots_that_do_not_fit_leave_it_to_solves(cupy, kind, diagonal):
    """Pivots of a grid with such a diagonal, and of values that need none but those of their fronts."""
    easy = canonical(gallery.poisson(20, 20))
    hard, indices = easy.copy(), np.arange(20)
    hard.setdiag(diagonal)
    for put in (np.asarray, cupy.asarray):
        factor = analyzed(kind, easy, indices, engine="supernodal").factor(put(easy.data))
        assert factor.eliminated
        factor.refactor(put(hard.data))
        assert not factor.eliminated
        assert type(factor.schur) is type(put(easy.data))
        np.testing.assert_allclose(on_host(factor.schur), dense_schur(hard.toarray(), indices), atol=1e-12)


@pytest.mark.usefixtures("device")
def test_an_interface_that_nothing_couples(cupy):
    A = sp.csc_array(sp.block_diag([near_definite(40), np.zeros((2, 2))]))
    factor = analyzed("lu", A, [40, 41], engine="supernodal").factor(cupy.asarray(A.data))
    factor.refactor(cupy.asarray(2 * A.data))
    assert factor.eliminated
    assert not on_host(factor.schur).any()


def test_a_complement_that_is_wrong_is_not_handed_out(device, monkeypatch):
    A, indices = near_definite(40), np.array([30, 3, 17])
    symbolic = analyzed("lu", A, indices, engine="supernodal")
    assert symbolic.factor(A.data).eliminated
    fetch = device.fetch

    def changed(stream, to, source):
        fetch(stream, to, source)
        if to.shape == (3, 3):
            to[1, 2] *= 1 + 1e-9

    monkeypatch.setattr(device, "fetch", changed)
    factor = symbolic.factor(A.data)
    assert not factor.eliminated
    np.testing.assert_allclose(factor.schur, dense_schur(A.toarray(), indices), rtol=1e-12)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("kind", KINDS)
def test_contribution_blocks_that_share_memory(kind, monkeypatch):
    A, indices = two_grids(kind)
    monkeypatch.setattr(complement, "limits_of", lambda *_: Limits(block_bytes=4096))
    symbolic = analyzed(kind, A, indices, engine="supernodal", ordering="nd")
    factor = symbolic.factor(A.data)
    (program,) = symbolic._memo.values()
    assert len(program.plan.segment_ptr) > 3
    np.testing.assert_allclose(factor.schur, dense_schur(A.toarray(), indices), atol=1e-12)
    assert factor.eliminated


@pytest.mark.usefixtures("device")
def test_memory_too_short_for_both_leaves_it_to_solves():
    A, indices = spd_matrix(300), np.arange(40)
    enough = analyzed("cholesky", A, indices, engine="supernodal").interior.factor(A[40:, 40:].data).stats.bytes
    factor = analyzed("cholesky", A, indices, engine="supernodal", device_memory=3 * enough // 2).factor(A.data)
    assert not factor.eliminated
    np.testing.assert_allclose(factor.schur, dense_schur(A.toarray(), indices), atol=1e-10)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("dtype", dtypes("fD"))
def test_values_of_a_widened_factor(cupy, dtype):
    C = np.zeros((40, 1), dtype)
    C[::9] = 1
    check_widened(cupy, spd_matrix(40, dtype), C)
