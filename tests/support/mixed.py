"""What factors in mixed precision have to fulfil, on the processor, in the emulator and on a device."""

import numpy as np
import scipy.sparse as sp

from gpusplu.common.timing import backward_error

from .small_matrices import canonical
from .solves import check_solves, on_host

ENOUGH = 2e-15  # backward errors up to which nothing is refined, about


def with_values(values, dtype="d"):
    """A dense matrix with these singular values."""
    n, rng = len(values), np.random.default_rng(0)
    left, right = (np.linalg.qr(random_part(rng, n, dtype))[0] for _ in range(2))
    return canonical(sp.csc_array((left * values) @ right))


def random_part(rng, n, dtype):
    v = rng.standard_normal((n, n))
    return v + 1j * rng.standard_normal((n, n)) if dtype == "D" else v


def conditioned(size, dtype="d", n=60):
    """A dense matrix with that condition number, whose singular values are spread evenly."""
    return with_values(np.geomspace(1, 1 / size, n), dtype)


def few_small(count, size, n=60):
    """One whose singular values are ones but for a few."""
    return with_values(np.where(np.arange(n) < count, size, 1.0))


def check_mixed(A, make, columns=((), (3,)), put=np.asarray, **options):
    """A factor in single precision, with answers in double precision for old values and new ones."""
    factor = make(A, precision="mixed", **options)
    assert factor.dtype == A.dtype
    check_solves(A, factor, columns, put, lambda *_: ENOUGH)
    doubled = canonical(sp.csc_array((2 * A.data, A.indices, A.indptr)))
    factor.refactor(put(doubled.data))
    check_solves(doubled, factor, columns, put, lambda *_: ENOUGH)
    factor.refactor(A)
    check_solves(A, factor, columns[:1], put, lambda *_: ENOUGH)
    stats = factor.stats
    assert stats.precision == "mixed"
    assert stats.n_double == 0
    assert stats.n_refactor == 2
    assert stats.n_refinement > 0
    assert "single precision" in factor.explain()
    return factor


def check_double_after_all(A, make, why, put=np.asarray, **options):
    """A matrix for which single precision is not enough; the factor reports it."""
    factor = make(A, precision="mixed", **options)
    b = A @ np.ones(A.shape[0], A.dtype)
    x = on_host(factor.solve(put(b)))
    assert backward_error(A, x, b) < ENOUGH
    stats = factor.stats
    assert (stats.precision, stats.n_double) == ("double", 1)
    assert why in stats.why_double
    assert stats.why_double in factor.explain()
    factor.refactor(put(3 * A.data))
    assert backward_error(3 * A, on_host(factor.solve(put(b))), b) < ENOUGH
    assert factor.stats.n_double == 1
    return factor


def check_parts_are_double(A, mixed, double):
    """What is read off factors is no better than they are."""
    found, known = mixed.slogdet(), double.slogdet()
    np.testing.assert_allclose(found.sign, known.sign, rtol=1e-13)
    np.testing.assert_allclose(found.logabsdet, known.logabsdet, rtol=1e-13)
    np.testing.assert_allclose(mixed.rcond(), double.rcond(), rtol=1e-6)
    np.testing.assert_allclose(mixed.inverse_diagonal(), double.inverse_diagonal(), rtol=1e-9)
    assert mixed.stats.precision == "mixed"
    assert mixed.stats.n_double == 1
