"""Dense kernels of one front against NumPy: factorization, statistics, solves, teams, instruction sets."""

import numpy as np
import pytest
import scipy.linalg as sla

from gpusplu import _core_testing

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
SIZES = [
    *[(w, h) for w in (1, 2, 3, 4, 5, 7, 8, 9) for h in (0, 1, 3, 8, 17, 30)],
    *[(13, 29), (16, 60), (17, 5), (32, 100), (33, 47), (64, 65), (65, 0), (100, 131), (200, 90)],
]
LARGE = [(300, 210), (257, 0), (130, 700), (800, 100)]


def random(rng, dtype, *shape):
    a = rng.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        a = a + 1j * rng.standard_normal(shape)
    return a.astype(dtype)


def padded(a, extra):
    """A column-major copy of `a` whose leading dimension exceeds its rows; the padding is NaN."""
    buffer = np.full((a.shape[0] + extra, a.shape[1]), np.nan, a.dtype, order="F")
    buffer[: a.shape[0]] = a
    return buffer[: a.shape[0]]


def eps(dtype):
    return float(np.finfo(dtype).eps)


def lu_front(a, w, extra=3, team_size=1, **rule):
    """Factor the front [[A11, A12], [A21, A22]]; returns P, L (R x W), U (W x R), C and the statistics."""
    r = a.shape[0]
    panel, upper, c = padded(a[:, :w], extra), padded(a[:w, w:].T, extra), padded(a[w:, w:], extra)
    pivots = np.full(w, -1, np.int32)
    stats = _core_testing.lu_front(panel, upper, c, pivots, team_size=team_size, **rule)
    perm = np.arange(r)
    for k, p in enumerate(pivots):
        assert k <= p < w
        perm[[k, p]] = perm[[p, k]]
    lower = np.tril(panel, -1) + np.eye(r, w, dtype=a.dtype)
    full_upper = np.hstack([np.triu(panel[:w]), upper.T])
    return perm, lower, full_upper, c, stats, (panel, upper, pivots)


def check_lu(a, w, **kwargs):
    perm, lower, upper, c, stats, raw = lu_front(a, w, **kwargs)
    rest = np.zeros_like(a)
    rest[w:, w:] = c
    growth = np.abs(lower) @ np.abs(upper)
    growth[w:, w:] += np.abs(a[w:, w:])
    error = np.abs(lower @ upper + rest - a[perm])
    assert np.all(error <= 4 * (w + 2) * eps(a.dtype) * growth)
    return stats, perm, lower, upper, raw


@pytest.mark.parametrize("dtype", DTYPES)
def test_lu(level, dtype):
    rng = np.random.default_rng(1)
    for w, h in SIZES:
        a = random(rng, dtype, w + h, w + h)
        stats, perm, lower, upper, _ = check_lu(a, w)
        assert stats["n_perturbed"] == 0 and stats["n_tiny"] == 0 and stats["finite"]
        _, expected, _ = sla.lu(a[:w, :w])
        if np.isrealobj(a):
            np.testing.assert_allclose(lower[:w], expected, rtol=0, atol=1e4 * w * eps(dtype))

        def size(v):  # complex entries count as two real ones
            return max(np.abs(v.real).max(initial=0), np.abs(v.imag).max(initial=0))

        assert stats["max_multiplier"] == pytest.approx(size(lower[w:]), rel=4 * eps(dtype))
        assert stats["max_upper"] == pytest.approx(size(upper), rel=4 * eps(dtype))
        pivots = np.diag(upper[:, :w])
        assert stats["min_pivot"] == pytest.approx(
            np.min(np.abs(pivots.real) + np.abs(pivots.imag)), rel=4 * eps(dtype)
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky(level, dtype):
    rng = np.random.default_rng(2)
    for w, h in SIZES:
        r = w + h
        b = random(rng, dtype, r, r)
        a = (b @ b.conj().T / r + np.eye(r)).astype(dtype)
        lower = a.copy()
        lower[np.triu_indices(r, 1)] = np.nan  # neither read nor written
        panel, c = padded(lower[:, :w], 5), padded(lower[w:, w:], 1)
        assert _core_testing.cholesky_front(panel, c) == -1
        assert np.all(np.isnan(panel[np.triu_indices(w, 1)])) and np.all(np.isnan(c[np.triu_indices(h, 1)]))
        factor = np.tril(panel)
        rest = a - factor @ factor.conj().T
        expected = np.zeros_like(a)
        expected[w:, w:] = np.tril(c) + np.tril(c, -1).conj().T
        assert np.abs(rest - expected).max() <= 4 * (w + 2) * eps(dtype) * np.abs(a).max()


@pytest.mark.parametrize("dtype", DTYPES)
def test_perturbation(level, dtype):
    for w, h in [(1, 4), (2, 0), (3, 5), (8, 20), (12, 9), (40, 30)]:
        for pivot in (1e-9, -1e-9, 0.0, 1e-9j if np.issubdtype(dtype, np.complexfloating) else 2e-9):
            a = np.eye(w + h, dtype=dtype)
            last = w - 1
            a[last, last] = pivot
            a[w:, last] = 1
            a[last, w:] = 3
            _, lower, upper, c, stats, _ = lu_front(a, w, perturb_below=1e-3, tiny_below=1e-6)
            size = abs(np.asarray(pivot).real) + abs(np.asarray(pivot).imag)
            expected = 1e-3 if pivot == 0 else pivot / size * 1e-3
            assert upper[last, last] == pytest.approx(expected, rel=1e-6)
            assert stats["n_perturbed"] == 1 and stats["n_tiny"] == 1 and stats["finite"]
            assert stats["min_pivot"] == pytest.approx(size, rel=1e-6)
            if h:
                assert stats["max_multiplier"] == pytest.approx(1e3, rel=1e-6)
                np.testing.assert_allclose(c, np.eye(h) - 3 / expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("nrhs", [1, 2, 5, 16, 19])
def test_solve(level, dtype, nrhs):
    rng = np.random.default_rng(5)
    for w, h in [(1, 0), (1, 7), (2, 9), (3, 1), (4, 20), (5, 0), (8, 30), (11, 13), (24, 50), (70, 33)]:
        r = w + h
        a = random(rng, dtype, r, r) + 2 * np.eye(r, dtype=dtype)
        _, lower, upper, _, _, (panel, ut, _) = lu_front(a, w)
        l11, l21, u11 = lower[:w], lower[w:], upper[:, :w]
        x, y = random(rng, dtype, w, nrhs), random(rng, dtype, h, nrhs)

        def run(kind, conj=False, panel=panel, ut=ut, x=x, y=y):
            px, py = padded(x, 3), padded(y, 1)
            _core_testing.solve_front(kind, panel, ut, px, py, conj=conj)
            return px, py

        def close(value, expected, r=r):
            atol = 200 * r * eps(dtype) * max(1, np.abs(expected).max(initial=0))
            np.testing.assert_allclose(value, expected, rtol=0, atol=atol)

        def solve(t, b):
            wide = t.astype(np.promote_types(t.dtype, np.float64))
            return np.linalg.solve(wide, b).astype(dtype)

        px, py = run("lu_forward")
        z = solve(l11, x)
        close(px, z), close(py, y - l21 @ z)
        px, py = run("lu_backward")
        tolerance = np.abs(np.linalg.inv(u11)).max()
        if tolerance < 50:
            close(px, solve(u11, x - ut.T @ y))
        close(py, y)
        for conj in (False, True):
            op = np.conj if conj else np.asarray
            px, py = run("lu_forward_t", conj)
            if tolerance < 50:
                z = solve(op(u11).T, x)
                close(px, z), close(py, y - op(ut) @ z)
            px, py = run("lu_backward_t", conj)
            close(px, solve(op(l11).T, x - op(l21).T @ y))

        spd = (a @ a.conj().T / r + np.eye(r)).astype(dtype)
        factor = padded(spd[:, :w], 2)
        assert _core_testing.cholesky_front(factor, padded(spd[w:, w:], 0)) == -1
        c11, c21 = np.tril(factor[:w]), factor[w:]
        for conj in (False, True):
            op = np.conj if conj else np.asarray
            px, py = run("cholesky_forward", conj, panel=factor)
            z = solve(op(c11), x)
            close(px, z), close(py, y - op(c21) @ z)
            px, py = run("cholesky_backward", conj, panel=factor)
            close(px, solve(op(c11).conj().T, x - op(c21).conj().T @ y))
            close(py, y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_fronts_do_not_depend_on_the_team(threads, dtype):
    threads(3)
    rng = np.random.default_rng(6)
    for w, h in LARGE:
        r = w + h
        a = random(rng, dtype, r, r)
        check_lu(a, w, team_size=2)
        runs = [lu_front(a, w, team_size=size) for size in (1, 2, 3)]
        for other in runs[1:]:
            for x, y in zip(runs[0][:4], other[:4], strict=True):
                assert x.tobytes() == y.tobytes()
            assert runs[0][4] == other[4]
        spd = (a @ a.conj().T / r + np.eye(r)).astype(dtype)
        factors = []
        for size in (1, 2, 3):
            panel, c = padded(spd[:, :w], 5), padded(spd[w:, w:], 1)
            assert _core_testing.cholesky_front(panel, c, team_size=size) == -1
            factors.append((np.tril(panel), np.tril(c)))
        lower, c = factors[0]
        rest = spd - lower @ lower.conj().T
        rest[w:, w:] -= np.tril(c) + np.tril(c, -1).conj().T
        assert np.abs(rest).max() <= 4 * w * eps(dtype) * np.abs(spd).max()
        for other in factors[1:]:
            assert all(x.tobytes() == y.tobytes() for x, y in zip(factors[0], other, strict=True))
        spd_bad = spd.copy()
        spd_bad[w - 5, w - 5] = -1
        for size in (1, 2, 3):
            panel, c = padded(spd_bad[:, :w], 5), padded(spd_bad[w:, w:], 1)
            assert _core_testing.cholesky_front(panel, c, team_size=size) == w - 5


# Rows of a child in a front of 7 columns and 230 rows: single ones, pairs, and runs, across the last column and not, of
# more rows than a vector has numbers and of fewer; and so many that one triangle is in strips.
CHILDREN = {
    "none": [],
    "single": [*range(1, 70, 3)],
    "pairs": [r for r in range(2, 70) if r % 3],
    "one run": [*range(4, 45)],
    "few runs": [*range(3, 9), *range(12, 20), *range(40, 47), *range(48, 70)],
    "below": [*range(7, 70)],
    "strips": [*range(3, 140, 2), *range(140, 229)],
    "strips of runs": [*range(5, 90), *range(100, 230)],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rel", CHILDREN.values(), ids=CHILDREN)
@pytest.mark.parametrize("one_triangle", [True, False])
def test_a_child_is_added(level, dtype, rel, one_triangle):
    rng = np.random.default_rng(5)
    r, w, m = 230, 7, len(rel)
    block = np.asfortranarray(random(rng, dtype, m, m))
    for begin, end in ((0, r), (0, 5), (3, 30), (15, r), (70, 150)):
        a = random(rng, dtype, r, r)
        expected = a.copy()
        for j in range(m):
            if begin <= rel[j] < end:
                # Column rel[j] of the front, and of LU the part of it that is in the transposed upper panel.
                i = slice(j if one_triangle else 0, m)
                expected[rel[i], rel[j]] += block[i, j]
        panel, upper, c = (np.asfortranarray(part) for part in (a[:, :w], a[:w, w:].T, a[w:, w:]))
        _core_testing.add_child(panel, upper, c, np.array(rel, np.int32), block, begin, end, one_triangle, False)
        got = np.block([[panel[:w], upper.T], [panel[w:], c]])
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_child_that_covers_the_block_is_copied(level, dtype):
    rng = np.random.default_rng(6)
    r, w, rel = 160, 5, np.array([1, 3, *range(5, 160)], np.int32)
    block = np.asfortranarray(random(rng, dtype, rel.size, rel.size))
    panel, c = np.zeros((r, w), dtype, order="F"), np.full((r - w, r - w), np.nan, dtype, order="F")
    _core_testing.add_child(panel, np.zeros((r - w, w), dtype, order="F"), c, rel, block, 0, r, True, True)
    np.testing.assert_array_equal(np.tril(np.nan_to_num(c)), np.tril(block[2:, 2:]))
    assert np.isnan(c[np.triu_indices(r - w, 1)]).all()
