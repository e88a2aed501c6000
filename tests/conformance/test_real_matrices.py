"""Real matrices and real sequences: the backward error is at most the larger of 1e-14 and ten times SciPy's."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import gpusplu as gs
from gpusplu.common.timing import backward_error

UNSYMMETRIC = [
    *("2dcyl1", "add20", "adder_dcop_05", "anemometer1_A1", "arc130", "bayer10", "bp_1000", "cage8"),
    *("case3375wp_nrjac", "case_ACTIVSg10k_nrjac", "faer_matrix_n19168", "fs_183_6"),
    *("ginkgo_mc64_example", "ibmpg1t_mna_tran", "mbeacxc", "memplus", "nnc1374", "orsirr_1", "rajat19"),
    *("reorientation_1", "sherman2", "sherman5", "steam2", "young1c"),
]
SYMMETRIC = [
    *("1138_bus", "Dubcova1", "bcsstk16", "bcsstk18", "bcsstk26", "bodyy4", "cotlap_armadillo", "fv2"),
    *("ibmpg2t_spd_tran", "rail_20209_negA"),
]
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("ibmpg2t_mna_tran",)]
SEQUENCES = ("add20_seq", "mem_plus_seq", "smult20_seq", "voter_seq")


def right_hand_side(A):
    return (A @ np.linspace(1, 2, A.shape[0])).astype(A.dtype)


def limit(scipys):
    return max(1e-14, 10 * scipys)


@pytest.mark.parametrize("name", UNSYMMETRIC + SYMMETRIC + SLOW)
def test_splu(real_matrix, name):
    A = real_matrix(name)
    try:
        theirs = spla.splu(A)
    except RuntimeError:
        with pytest.raises(RuntimeError, match="Factor is exactly singular"):
            gs.splu(A)
        return
    ours = gs.splu(A)
    for trans, op in (("N", A), ("T", A.T)):
        b = right_hand_side(op)
        bound = limit(backward_error(op, theirs.solve(b, trans), b))
        assert backward_error(op, ours.solve(b, trans), b) <= bound
        ours.refactor(A.data)
        assert backward_error(op, ours.solve(b, trans), b) <= bound


@pytest.mark.parametrize("name", SYMMETRIC)
def test_cholesky(real_matrix, name):
    A = real_matrix(name)
    b = right_hand_side(A)
    ch = gs.cholesky(A)
    assert backward_error(A, ch.solve(b), b) <= 1e-14
    ch.refactor(A.data * 2)
    assert backward_error(2 * A, ch.solve(b), b) <= 1e-14


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequence(real_sequence, name):
    """Newton matrices of a simulation, one after the other through refactor."""
    indptr, indices, shape, data = real_sequence(name)
    lu = None
    for step, values in enumerate(data):
        A = sp.csc_array((values, indices, indptr), shape=shape)
        if lu is None:
            lu = gs.splu(A)
        else:
            lu.refactor(values)
        theirs = spla.splu(A)
        for trans, op in (("N", A), ("T", A.T)):
            b = right_hand_side(op)
            bound = limit(backward_error(op, theirs.solve(b, trans), b))
            assert backward_error(op, lu.solve(b, trans), b) <= bound, f"step {step}, {trans}"
