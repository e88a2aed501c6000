"""Generators of the gallery: shapes, symmetry, definiteness and physics against small dense references."""

import numpy as np
import pytest
import scipy.sparse as sp

from gpusplu import gallery

NAMES = [
    "circuit:12x9",
    "convdiff:5",
    "convdiff:9x7",
    "elast:3x2x4",
    "helmholtz:9x8",
    "kkt:30x12",
    "kkt:40x30x8",
    "lines:1x2x9",
    "lines:4x3x5",
    "mixed:4x5",
    "poisson:11",
    "poisson:8x6",
    "poisson:4x3x5",
    "power:12x9",
    "power:9x5x3",
    "rlc:12x9",
    "stokes:5x4",
    "stokes:3x4x2",
]


@pytest.mark.parametrize("name", NAMES)
def test_canonical_and_nonsingular(name):
    A = gallery.named(name)
    assert isinstance(A, sp.csc_array) and A.dtype == np.float64 and A.indices.dtype == np.int32
    assert A.shape[0] == A.shape[1] and np.all(np.isfinite(A.data))
    rebuilt = A.copy()
    rebuilt.has_canonical_format = False
    rebuilt.sum_duplicates()
    assert np.array_equal(rebuilt.indices, A.indices) and np.array_equal(rebuilt.indptr, A.indptr)
    assert np.linalg.matrix_rank(A.toarray() / abs(A).max()) == A.shape[0]
    assert (gallery.named(name) != A).nnz == 0


def test_sizes_signs_and_seeds():
    assert gallery.poisson(6, 7, 8).nnz == 2060
    one, other = (sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(p, p)) for p in (6, 4))
    np.testing.assert_array_equal(gallery.poisson(6, 4).toarray(), sp.kronsum(other, one).toarray())
    A = gallery.elasticity(4, 4, 4)
    assert (A.shape[0], A.nnz) == (3 * 4 * 5 * 5, 9 * (3 * 5 - 2) ** 2 * (3 * 4 - 2))
    A = gallery.rlc_mesh(100, 100)
    assert abs(A.shape[0] - 10000 - 9900) < 300 and (abs(A.T - A) > 1e-12).nnz > 0
    A = gallery.power_mesh(20, 20)
    assert A.shape[0] == 800 + 3 * 4 and np.array_equal(A.toarray(), A.toarray().T) and np.sum(A.diagonal() == 0) == 8
    assert gallery.power_mesh(20, 20, mna=False).shape[0] == 800
    assert (gallery.power_mesh(6, 6, 1, seed=1) != gallery.power_mesh(6, 6, 1, seed=2)).nnz > 0
    assert np.sum(np.linalg.eigvalsh(gallery.helmholtz(99, waves=3.2).toarray()) < 0) == 6  # one per standing wave


@pytest.mark.parametrize(
    "A", [gallery.poisson(7, 5), gallery.elasticity(2, 3, 2, contrast=1e3), gallery.power_mesh(9, 8, 3, mna=False)]
)
def test_positive_definite(A):
    dense = A.toarray()
    assert np.array_equal(dense, dense.T)
    assert np.linalg.eigvalsh(dense)[0] > 0


def test_convection_diffusion_is_an_m_matrix():
    A = gallery.convection_diffusion(8, 7, peclet=50.0).toarray()
    assert not np.allclose(A, A.T)
    assert np.all(A - np.diag(np.diag(A)) <= 0) and np.all(np.diag(A) > 0)
    assert np.all(A.sum(1) > -1e-12)
    np.testing.assert_allclose(
        gallery.convection_diffusion(8, 7, peclet=0.0).toarray(), gallery.poisson(8, 7).toarray()
    )


def test_elasticity_stretches_like_a_bar():
    """A bar pulled at its free end, without lateral contraction: Hooke's law is met exactly by the elements."""
    length, side = 6, 2
    A = gallery.elasticity(length, side, side, poisson_ratio=0.0)
    x = np.zeros((length, side + 1, side + 1, 3))
    x[..., 0] = np.arange(1, length + 1)[:, None, None] / length
    force = (A @ x.ravel()).reshape(x.shape)
    np.testing.assert_allclose(force[:-1], 0, atol=1e-14)
    np.testing.assert_allclose(force[-1, ..., 0].sum(), side * side / length)


def test_element_has_six_rigid_motions():
    values = np.linalg.eigvalsh(gallery.fields.cube_stiffness(0.3))
    assert np.sum(abs(values) < 1e-14) == 6 and values[6] > 1e-2


def test_circuit_jacobian_is_the_derivative():
    circuit = gallery.circuit(8, 7)
    rng = np.random.default_rng(1)
    x, previous, d = 0.7 * rng.normal(size=circuit.n), 0.1 * rng.normal(size=circuit.n), rng.normal(size=circuit.n)
    values, _ = circuit.stamp(x, previous, 3e-11, 1e-11)
    up, down = (circuit.stamp(x + h * d, previous, 3e-11, 1e-11)[1] for h in (1e-6, -1e-6))
    np.testing.assert_allclose(circuit.matrix(values) @ d, (up - down) / 2e-6, atol=1e-6)
    for scale in (-1e4, 1e4):  # nothing overflows
        values, residual = circuit.stamp(np.full(circuit.n, scale), circuit.rest(), 1e-11, 1e-11)
        assert np.all(np.isfinite(values)) and np.all(np.isfinite(residual))


@pytest.mark.parametrize(
    ("A", "positive"),
    [
        (gallery.kkt(40, 15, barrier), 40)
        for barrier in (1.0, 1e-3, 1e-6)  # eigenvalues of the next are too far apart for a dense check
    ]
    + [
        (gallery.kkt(20, 20), 20),
        (gallery.stokes(6, 5), 5 * 5 + 6 * 4),
        (gallery.stokes(3, 4, 2), 2 * 4 * 2 + 3 * 3 * 2 + 3 * 4),
        (gallery.mixed_elements(4, 6), 4 * 7 + 5 * 6),
    ],
)
def test_saddle_points(A, positive):
    dense = A.toarray()
    assert np.array_equal(dense, dense.T)
    eigenvalues = np.linalg.eigvalsh(dense)
    assert (np.sum(eigenvalues > 0), np.sum(eigenvalues < 0)) == (positive, A.shape[0] - positive)
    assert not A.diagonal()[positive:].any()


def test_stokes_velocities_of_a_gradient_are_balanced_by_pressures():
    """A force that is a gradient moves nothing: the pressures take it."""
    A = gallery.stokes(6, 5).toarray()
    flows = 5 * 5 + 6 * 4
    pressures = np.random.default_rng(0).normal(size=A.shape[0] - flows)
    solution = np.linalg.solve(A, np.concatenate([A[:flows, flows:] @ pressures, np.zeros(pressures.size)]))
    np.testing.assert_allclose(solution, np.concatenate([np.zeros(flows), pressures]), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((lambda bad=bad: gallery.named(bad), "is not family") for bad in ("poisson", "poisson:3x", "cube:3")),
        (lambda: gallery.poisson(), "positive integers"),
        (lambda: gallery.elasticity(3, 3), "positive integers"),
        (lambda: gallery.rlc_mesh(0, 3), "positive integers"),
        (lambda: gallery.rlc_lines(3, 3, 0), "positive integers"),
        (lambda: gallery.circuit(0, 3), "positive integers"),
        (lambda: gallery.elasticity(2, 2, 2, poisson_ratio=0.5), "poisson_ratio"),
        (lambda: gallery.kkt(3, 4), "constraints=4 must not be more"),
        (lambda: gallery.stokes(1, 5), "two cells"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
