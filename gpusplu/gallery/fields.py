"""Finite differences and finite elements on regular grids: Poisson, convection-diffusion, linear elasticity."""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

Offset = tuple[int, ...]


def poisson(*shape: int) -> csc_array:
    """Laplacian on a grid with Dirichlet boundaries: 3-point, 5-point or 7-point differences.

    Parameters
    ----------
    *shape : int
        Interior grid points along each of one, two or three axes.

    Returns
    -------
    csc_array
        Symmetric positive definite, ``2 * len(shape)`` on the diagonal and -1 off it.

    Examples
    --------
    >>> from gpusplu import gallery
    >>> gallery.poisson(3).toarray()
    array([[ 2., -1.,  0.],
           [-1.,  2., -1.],
           [ 0., -1.,  2.]])
    """
    check_shape(shape, 1, 3)
    offsets = star(len(shape))
    values = np.array([-1.0 if any(offset) else 2.0 * len(shape) for offset in offsets])
    blocks = np.broadcast_to(values[:, None, None, None], (len(offsets), int(np.prod(shape)), 1, 1))
    return from_stencil(shape, offsets, blocks)


def convection_diffusion(*shape: int, peclet: float = 20.0) -> csc_array:
    """Upwind differences of ``-div(grad u) + dot(v, grad u)`` with a rotating velocity field.

    Parameters
    ----------
    *shape : int
        Interior grid points along each of one, two or three axes.
    peclet : float
        Speed of the flow times the length of the domain over the diffusion; 0 gives :func:`poisson`.

    Returns
    -------
    csc_array
        Symmetric in pattern, not in values; an M-matrix.

    Examples
    --------
    >>> A = gs.gallery.convection_diffusion(8, 8)
    >>> A.shape[0] == A.shape[1]
    True
    """
    check_shape(shape, 1, 3)
    offsets = star(len(shape))
    places = [axis.ravel() for axis in np.meshgrid(*[(np.arange(m) + 1.0) / (m + 1) for m in shape], indexing="ij")]
    values = np.zeros((len(offsets), places[0].size))
    centre = offsets.index((0,) * len(shape))
    for axis, m in enumerate(shape):
        turn = np.cos(np.pi * places[axis - 1]) if len(shape) > 1 else 1.0
        speed = peclet / (m + 1) * np.sin(np.pi * places[axis]) * turn  # cell Peclet number
        for sign, flow in ((-1, np.maximum(speed, 0)), (1, np.maximum(-speed, 0))):
            offset = tuple(sign if k == axis else 0 for k in range(len(shape)))
            values[offsets.index(offset)] = -1 - flow
            values[centre] += 1 + flow
    return from_stencil(shape, offsets, values[:, :, None, None])


def elasticity(*shape: int, poisson_ratio: float = 0.3, contrast: float = 1.0, seed: int = 0) -> csc_array:
    """Stiffness matrix of 3D linear elasticity: a block of trilinear cubes (Q1, 8 nodes), one face clamped.

    Parameters
    ----------
    *shape : int
        Elements along each of the three axes; the nodes with a first coordinate of zero are clamped and left out.
    poisson_ratio : float
        In [0, 0.5).
    contrast : float
        Ratio between the stiffest and the softest element; moduli are drawn log-uniformly. 1 is homogeneous.
    seed : int
        Of the moduli.

    Returns
    -------
    csc_array
        Symmetric positive definite with ``3 * shape[0] * (shape[1] + 1) * (shape[2] + 1)`` rows, three to a node,
        at most 81 entries a row. Couplings inside a 3 x 3 block that happen to cancel are kept as entries.

    Examples
    --------
    >>> A = gs.gallery.elasticity(3, 3, 3)
    >>> A.shape[0] == A.shape[1]
    True
    """
    check_shape(shape, 3, 3)
    stiffness = cube_stiffness(poisson_ratio)
    modulus = contrast ** np.random.default_rng(seed).uniform(-0.5, 0.5, shape) if contrast != 1 else np.ones(shape)
    corners = list(product((0, 1), repeat=3))
    offsets = list(product((-1, 0, 1), repeat=3))
    nodes = tuple(m + 1 for m in shape)
    blocks = np.zeros((len(offsets), *nodes, 3, 3))
    for (a, near), (b, far) in product(enumerate(corners), repeat=2):
        offset = offsets.index(tuple(q - p for p, q in zip(near, far, strict=True)))
        window = tuple(slice(p, p + m) for p, m in zip(near, shape, strict=True))
        blocks[offset][window] += modulus[..., None, None] * stiffness[3 * a : 3 * a + 3, 3 * b : 3 * b + 3]
    free = (shape[0], *nodes[1:])
    return from_stencil(free, offsets, blocks[:, 1:].reshape(len(offsets), -1, 3, 3))


def cube_stiffness(poisson_ratio: float) -> NDArray[np.float64]:
    """Element stiffness (24 x 24) of the unit cube with Young's modulus 1, by 2 x 2 x 2 Gauss points.

    Nodes are the corners in lexicographic order, three displacements a node.
    """
    if not 0 <= poisson_ratio < 0.5:
        raise ValueError(f"poisson_ratio={poisson_ratio} is not in [0, 0.5)")
    shear = 1 / (2 * (1 + poisson_ratio))
    lame = poisson_ratio / ((1 + poisson_ratio) * (1 - 2 * poisson_ratio))
    law = np.diag([2 * shear] * 3 + [shear] * 3)
    law[:3, :3] += lame
    corners = np.array(list(product((0, 1), repeat=3)))
    gauss = 0.5 + np.array([-0.5, 0.5]) / np.sqrt(3)
    stiffness = np.zeros((24, 24))
    for point in product(gauss, repeat=3):
        factors = np.where(corners, point, 1 - np.array(point))  # of the trilinear shape function at each corner
        slopes = np.where(corners, 1.0, -1.0)
        gradient = np.stack([slopes[:, k] * factors[:, k - 1] * factors[:, k - 2] for k in range(3)])
        strain = np.zeros((6, 24))
        for k in range(3):
            strain[k, k::3] = gradient[k]
        for row, (p, q) in enumerate(((0, 1), (1, 2), (0, 2)), start=3):
            strain[row, p::3], strain[row, q::3] = gradient[q], gradient[p]
        stiffness += strain.T @ law @ strain / 8
    return (stiffness + stiffness.T) / 2


def star(ndim: int) -> list[Offset]:
    """A point and its neighbours along the axes, in lexicographic order."""
    return [o for o in product((-1, 0, 1), repeat=ndim) if np.abs(o).sum() <= 1]


def from_stencil(shape: Sequence[int], offsets: Sequence[Offset], blocks: NDArray[np.float64]) -> csc_array:
    """Assemble a matrix with ``blocks[k, p]`` in the block row of grid point p and the column of ``p + offsets[k]``.

    Parameters
    ----------
    shape : sequence of int
        Of the grid, last axis fastest.
    offsets : sequence of tuple
        In lexicographic order, so that every row comes out sorted. Neighbours outside the grid are dropped.
    blocks : ndarray, shape (len(offsets), prod(shape), d, d)
    """
    points, d = blocks.shape[1:3]
    numbers = np.arange(points, dtype=np.int32).reshape(shape)
    inside = np.zeros((points, len(offsets)), bool)
    column = np.zeros((points, len(offsets)), np.int32)
    for k, offset in enumerate(offsets):
        near = tuple(slice(max(0, -o), m - max(0, o)) for o, m in zip(offset, shape, strict=True))
        far = tuple(slice(max(0, o), m - max(0, -o)) for o, m in zip(offset, shape, strict=True))
        rows = numbers[near].ravel()
        inside[rows, k] = True
        column[rows, k] = numbers[far].ravel()
    values = np.moveaxis(blocks, (1, 2, 0, 3), (0, 1, 2, 3))  # point, row in block, neighbour, column in block
    keep = np.broadcast_to(inside[:, None, :, None], values.shape)
    columns = np.broadcast_to((d * column)[:, None, :, None] + np.arange(d, dtype=np.int32), values.shape)
    indptr = np.zeros(d * points + 1, np.int32)
    np.cumsum(np.repeat(d * inside.sum(1), d), out=indptr[1:])
    return csr_array((values[keep], columns[keep], indptr), shape=(d * points, d * points)).tocsc()


def check_shape(shape: Sequence[int], low: int, high: int) -> None:
    """Raise ValueError unless `shape` is between `low` and `high` positive integers."""
    if not low <= len(shape) <= high or any(m < 1 for m in shape):
        count = f"{low}" if low == high else f"{low} to {high}"
        raise ValueError(f"shape={tuple(shape)} must be {count} positive integers")
