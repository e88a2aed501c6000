"""What tests of the column engines on a device share."""

import numpy as np
from test_answers import rhs

import gpusplu as gs
from gpusplu.cli.report import backward_error

CIRCUITS = [
    *("add20", "adder_dcop_05", "bayer10", "case3375wp_nrjac", "case_ACTIVSg10k_nrjac", "faer_matrix_n19168"),
    *("ibmpg1t_mna_tran", "ibmpg2t_mna_tran", "memplus", "nnc1374", "rajat19", "sherman2", "steam2"),
]


def check(cupy, engine, A, columns):
    """As accurate as the CPU engine for right-hand sides of these shapes; the factor."""
    here, there = (gs.splu(A, engine=name) for name in ("cpu", engine))
    there.refactor(cupy.asarray(A.data))
    for shape in columns:
        b = rhs(A, shape)
        for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
            x = there.solve(cupy.asarray(b), trans)
            limit = max(20 * float(np.finfo(A.dtype).eps), 10 * backward_error(op, here.solve(b, trans), b))
            assert backward_error(op, x.get(), b) < limit, (trans, shape)
    assert there.engine == engine
    return there
