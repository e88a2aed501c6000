"""Symmetric indefinite matrices: interior-point and saddle-point systems, Stokes flow, mixed elements, Helmholtz."""

from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, coo_array, csc_array, diags_array, eye_array, kron, sparray, triu

from .fields import check_shape, poisson


def kkt(variables: int, constraints: int, barrier: float = 1e-3, seed: int = 0) -> csc_array:
    """System of one step of a primal-dual interior-point method for a quadratic program with bounds.

    Unknowns are the variables and the multipliers of equality constraints: ``[[H + X^-1 Z, J^T], [J, 0]]``. Near the
    solution a variable is at its bound, where ``X^-1 Z`` is about ``1 / barrier``, or away from it, where it is about
    `barrier`.

    Parameters
    ----------
    variables, constraints : int
        No more constraints than variables.
    barrier : float
        Barrier parameter: 1 far from the solution, 1e-8 close to it.
    seed : int

    Returns
    -------
    csc_array
        Symmetric, with `variables` positive and `constraints` negative eigenvalues. At most a third of the variables
        are at their bounds, no more than leave the constraints independent of them.

    Examples
    --------
    >>> A = gs.gallery.kkt(30, 10)
    >>> A.shape[0] == A.shape[1]
    True
    """
    check_shape((variables, constraints), 2, 2)
    if constraints > variables:
        raise ValueError(f"constraints={constraints} must not be more than variables={variables}")
    rng = np.random.default_rng(seed)
    own = np.arange(constraints) * variables // constraints  # a variable of its own for each constraint
    coupled = near(rng, np.arange(variables), 2, variables)
    hessian = coupled @ coupled.T + diags_array(rng.uniform(0.01, 1.0, variables))
    neighbours = near(rng, own, 3, variables)
    jacobian = neighbours + coo_array(
        (rng.choice([-1.0, 1.0], constraints), (np.arange(constraints), own)), (constraints, variables)
    )
    others = np.setdiff1d(np.arange(variables), own)
    at_bound = rng.permutation(others)[: variables // 3]
    weight = rng.uniform(0.1, 10.0, variables) * barrier
    weight[at_bound] /= barrier**2
    hessian = hessian + diags_array(weight)
    return canonical(block_array([[hessian, jacobian.T], [jacobian, None]]))


def stokes(*shape: int) -> csc_array:
    """Stokes flow in a closed box on staggered cells (marker and cell): ``[[-laplace, gradient], [-div, 0]]``.

    Parameters
    ----------
    *shape : int
        Cells along each of two or three axes, at least two.

    Returns
    -------
    csc_array
        Symmetric, velocities on the inner faces of the cells first, axis by axis, then the pressures, of which that of
        the last cell is fixed and left out: as many positive eigenvalues as velocities, and the others are negative.

    Examples
    --------
    >>> A = gs.gallery.stokes(4, 4)
    >>> A.shape[0] == A.shape[1]
    True
    """
    check_shape(shape, 2, 3)
    if min(shape) < 2:
        raise ValueError(f"stokes needs at least two cells along each axis, got {shape}")
    flows, divergence = [], []
    for axis, cells in enumerate(shape):
        flows.append(poisson(*(m - (k == axis) for k, m in enumerate(shape))))
        faces = np.arange(cells - 1)
        difference = coo_array(
            (np.repeat([1.0, -1.0], cells - 1), (np.r_[faces, faces + 1], np.r_[faces, faces])), (cells, cells - 1)
        )
        divergence.append(reduce(kron, [difference if k == axis else eye_array(m) for k, m in enumerate(shape)]))
    blocks: list[list[sparray | None]] = [[None] * (len(shape) + 1) for _ in range(len(shape) + 1)]
    for axis in range(len(shape)):
        pressures = csc_array(divergence[axis].tocsr()[:-1])
        blocks[axis][axis], blocks[-1][axis], blocks[axis][-1] = flows[axis], -pressures, -pressures.T
    return canonical(block_array(blocks))


def mixed_elements(rows: int, cols: int, contrast: float = 1e3, seed: int = 0) -> csc_array:
    """Darcy flow by mixed finite elements of lowest order (Raviart and Thomas) on a grid of squares.

    Parameters
    ----------
    rows, cols : int
        Squares along the two axes.
    contrast : float
        Ratio between the largest and the smallest permeability of a square; drawn log-uniformly.
    seed : int

    Returns
    -------
    csc_array
        Symmetric: a fluxes' mass matrix, zero pressures, and their coupling: a positive eigenvalue for each of the
        ``rows * (cols + 1) + (rows + 1) * cols`` fluxes through edges, a negative one for each square.

    Examples
    --------
    >>> A = gs.gallery.mixed_elements(4, 4)
    >>> A.shape[0] == A.shape[1]
    True
    """
    check_shape((rows, cols), 2, 2)
    squares = np.arange(rows * cols).reshape(rows, cols)
    resistance = contrast ** np.random.default_rng(seed).uniform(-0.5, 0.5, rows * cols)
    across = np.arange(rows * (cols + 1)).reshape(rows, cols + 1)
    down = across.size + np.arange((rows + 1) * cols).reshape(rows + 1, cols)
    entries = []
    for first, second in ((across[:, :-1], across[:, 1:]), (down[:-1], down[1:])):
        i, j, p = first.ravel(), second.ravel(), across.size + down.size + squares.ravel()
        # the mass of a square for two opposite edges is [[1/3, 1/6], [1/6, 1/3]]
        entries += [(i, i, resistance / 3), (j, j, resistance / 3), (i, j, resistance / 6), (j, i, resistance / 6)]
        one = np.ones(p.size)
        entries += [(p, i, -one), (i, p, -one), (p, j, one), (j, p, one)]
    row, col, value = (np.concatenate(part) for part in zip(*entries, strict=True))
    n = across.size + down.size + squares.size
    return canonical(coo_array((value, (row, col)), (n, n)))


def helmholtz(*shape: int, waves: float | None = None) -> csc_array:
    """Shifted Laplacian ``-laplace - k^2`` of standing waves, on a grid with Dirichlet boundaries.

    Parameters
    ----------
    *shape : int
        Interior grid points along each of one, two or three axes.
    waves : float, optional
        Wave lengths along the first axis; default: ten grid points per wave length.

    Returns
    -------
    csc_array
        Symmetric; indefinite as soon as more than half a wave fits in.

    Examples
    --------
    >>> A = gs.gallery.helmholtz(8, 8)
    >>> A.shape[0] == A.shape[1]
    True
    """
    check_shape(shape, 1, 3)
    points = shape[0] + 1
    shift = 2 * np.pi * (points / 10 if waves is None else waves) / points
    return canonical(poisson(*shape) - shift**2 * eye_array(int(np.prod(shape))))


def near(rng: np.random.Generator, centres: NDArray[np.int64], count: int, n: int) -> coo_array:
    """A matrix of n columns with `count` random entries a row, in columns near its centre."""
    rows = np.repeat(np.arange(centres.size), count)
    columns = (centres[rows] + rng.integers(-20, 21, rows.size)) % n
    return coo_array((rng.uniform(-0.5, 0.5, rows.size), (rows, columns)), (centres.size, n))


def canonical(A: sparray) -> csc_array:
    """The upper triangle of A and its mirror image in compressed columns: symmetric to the last bit."""
    upper = triu(A, format="csc")
    both = csc_array(upper + triu(A, 1, format="csc").T)
    both.sum_duplicates()
    both.indices, both.indptr = both.indices.astype(np.int32), both.indptr.astype(np.int32)
    return both
