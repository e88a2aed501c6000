"""What determinants and condition numbers of a factor on a device have to fulfil."""

import numpy as np

from .small_matrices import EPS


def check_determinant_and_condition(A, factorize, engine):
    """Those of the processor, by the device alone."""
    here, there = (factorize(A, engine=name) for name in ("cpu", engine))
    for values in (A.data, 3 * A.data):
        for factor in (here, there):
            factor.refactor(values)
        had_cpu = there._core._cpu
        b = np.ones(A.shape[0], A.dtype)
        there.solve(b)
        error = there.backward_error
        found, known, eps = there.slogdet(), here.slogdet(), EPS[A.dtype.char]
        assert type(found.sign) is type(known.sign)
        assert abs(found.sign - known.sign) < 1e3 * eps
        assert abs(found.logabsdet - known.logabsdet) < 1e3 * eps * max(A.shape[0], abs(known.logabsdet))
        np.testing.assert_allclose(there.rcond(), here.rcond(), rtol=1e-3 if eps > 1e-10 else 1e-6)
        assert there.backward_error == error
        assert there._core._cpu is had_cpu
        assert there._core._host.name != "CURRENT" or values is A.data
    return there
