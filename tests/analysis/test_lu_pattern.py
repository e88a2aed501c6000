"""Patterns of L and U with diagonal pivots against dense symbolic elimination."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusplu import _core_testing
from support.symbolic_reference import dense_of, random_pattern


def eliminate_unsymmetric(dense):
    factors = dense.copy()
    np.fill_diagonal(factors, True)
    for k in range(len(factors)):
        factors[k + 1 :, k + 1 :] |= np.outer(factors[k + 1 :, k], factors[k, k + 1 :])
    return np.tril(factors), np.triu(factors)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 25), st.sampled_from([0.0, 0.04, 0.1, 0.2, 0.5, 1.0]), st.integers(0, 2**32 - 1))
def test_lu_pattern(n, density, seed):
    dense, *arrays = random_pattern(n, density, seed)
    rng = np.random.default_rng(seed + 1)
    row_perm, col_perm = rng.permutation(n).astype(np.int32), rng.permutation(n).astype(np.int32)
    (l_ptr, l_ind), (u_ptr, u_ind), flops = _core_testing.lu_pattern(*arrays, row_perm, col_perm)
    lower, upper = eliminate_unsymmetric(dense[row_perm][:, col_perm])
    assert (dense_of(n, l_ptr, l_ind) == lower).all() and (dense_of(n, u_ptr, u_ind) == upper).all()
    for j in range(n):
        assert (np.diff(l_ind[l_ptr[j] : l_ptr[j + 1]]) > 0).all() and l_ind[l_ptr[j]] == j
        assert (np.diff(u_ind[u_ptr[j] : u_ptr[j + 1]]) > 0).all() and u_ind[u_ptr[j + 1] - 1] == j
    below, right = lower.sum(axis=0) - 1, upper.sum(axis=1) - 1
    assert flops == pytest.approx((below + 2 * below * right).sum())
