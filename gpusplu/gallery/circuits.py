"""Linear circuits: modified nodal analysis (MNA) of meshes, one step of an implicit time integration each.

Unknowns are node voltages, then branch currents. A branch of resistance R and inductance L between nodes a and b has
the row ``v_a - v_b - (R + L / step) i = history``; a capacitor to ground adds ``C / step`` to its node's diagonal.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array

Index = NDArray[np.int64]
Stamp = tuple[Index, Index, NDArray[np.float64]]  # rows, columns, values: one part of a matrix in coordinate form


def rlc_mesh(rows: int, cols: int, *, inductive: float = 0.5, step: float = 1e-10, seed: int = 0) -> csc_array:
    """MNA matrix of a mesh of resistors and RL branches with a capacitor at every node.

    Parameters
    ----------
    rows, cols : int
        Nodes along each side.
    inductive : float
        Share of the branches that have an inductor, and so a current among the unknowns.
    step : float
        Time step [s].
    seed : int
        Of component values and places.

    Returns
    -------
    csc_array
        Unsymmetric in pattern and values (one node in twenty drives a controlled current source near by), about
        ``rows * cols * (1 + 2 * inductive)`` rows and four entries a row.

    Examples
    --------
    >>> A = gs.gallery.rlc_mesh(8, 8)
    >>> A.shape[0] == A.shape[1]
    True
    """
    check_mesh(rows, cols)
    rng = np.random.default_rng(seed)
    nodes = rows * cols
    a, b = mesh_branches(rows, cols)
    has_inductor = rng.random(a.size) < inductive
    current = nodes + np.arange(has_inductor.sum())
    impedance = rng.uniform(1, 10, current.size) + rng.uniform(0.5e-9, 2e-9, current.size) / step
    stamps = [
        grounded(np.arange(nodes), rng.uniform(0.5e-12, 2e-12, nodes) / step),
        conductance(a[~has_inductor], b[~has_inductor], 1 / rng.uniform(1, 10, a.size - current.size)),
        series_branch(a[has_inductor], b[has_inductor], current, -impedance),
        controlled_source(nearby_nodes(rng, rows, cols, nodes // 20), rng.uniform(0.01, 0.1, nodes // 20)),
    ]
    return assemble(stamps, nodes + current.size)


def rlc_lines(rows: int, cols: int, sections: int, *, step: float = 1e-11, seed: int = 0) -> csc_array:
    """MNA matrix of a mesh with a line of RLC sections in every branch and voltage sources at its corners.

    A section is a resistor and an inductor in series, and a capacitor at each of its ends. A step of backward Euler
    replaces the inductor by a resistor of ``L / step`` and a source of the last current, the capacitor by a resistor of
    ``step / C`` and a source of the last voltage. Their stamps, with branch currents as unknowns:

    - node k: ``C / step v_k + i_out - i_in = C / step v_k(last)``
    - current from a to b: ``i - g (v_a - v_b) = g L / step i(last)`` with ``g = 1 / (R + L / step)``
    - source: ``v_corner = input``

    Parameters
    ----------
    rows, cols : int
        Nodes along each side of the mesh; ``1, 2`` is one line, ``2, n`` a ladder.
    sections : int
        Of each line.
    step : float
        Time step [s]. A wave passes a section in about 30 ps. With longer steps the off-diagonal entries ``1`` and
        ``g`` become the larger pivots, and then errors grow from section to section.
    seed : int
        Of component values.

    Returns
    -------
    csc_array
        Symmetric in pattern, not in values; ``rows * cols`` rows, ``2 * sections - 1`` more for each branch of the mesh
        and one for each corner. Three entries per row except for the nodes of the mesh.

    Examples
    --------
    As many unknowns and entries as rlc1, rlc2 and rlc4 of the GLU paper have ``lines:100x100x50``, ``lines:200x200x25``
    and ``lines:200x200x100``; a smaller one:

    >>> from gpusplu import gallery
    >>> gallery.rlc_lines(10, 10, 50).shape
    (17924, 17924)
    """
    check_mesh(rows, cols, sections)
    rng = np.random.default_rng(seed)
    first, last = mesh_branches(rows, cols)
    inner = rows * cols + np.arange(first.size * (sections - 1)).reshape(first.size, sections - 1)
    places = np.column_stack([first, inner, last])
    a, b = places[:, :-1].ravel(), places[:, 1:].ravel()
    nodes = rows * cols + inner.size
    corner = np.unique([0, cols - 1, (rows - 1) * cols, rows * cols - 1])
    current, source = np.split(nodes + np.arange(a.size + corner.size), [a.size])
    impedance = rng.uniform(1, 10, a.size) + rng.uniform(0.5e-9, 2e-9, a.size) / step
    stamps = [
        grounded(np.arange(nodes), rng.uniform(0.5e-12, 2e-12, nodes) / step),
        solved_branch(a, b, current, 1 / impedance),
        grounded_source(corner, source),
    ]
    return assemble(stamps, nodes + current.size + source.size)


def power_mesh(
    rows: int, cols: int, layers: int = 2, *, mna: bool = True, step: float = 1e-11, seed: int = 0
) -> csc_array:
    """On-chip power grid: metal layers of stripes joined by vias, decoupling capacitors, package at the pads.

    Parameters
    ----------
    rows, cols : int
        Nodes along each side of a layer; stripes run along alternating directions.
    layers : int
        Metal layers.
    mna : bool
        Keep voltage sources and package inductors as branches with a current each: symmetric indefinite with zeros
        on the diagonal. False eliminates them: symmetric positive definite.
    step : float
        Time step [s].
    seed : int
        Of component values and places.

    Returns
    -------
    csc_array
        ``rows * cols * layers`` nodes, and with `mna` three more unknowns for each of its about
        ``rows * cols / 100`` pads.

    Examples
    --------
    >>> A = gs.gallery.power_mesh(8, 8)
    >>> A.shape[0] == A.shape[1]
    True
    """
    check_mesh(rows, cols, layers)
    rng = np.random.default_rng(seed)
    sheet = rows * cols
    number = np.arange(sheet).reshape(rows, cols)
    stamps = []
    for layer in range(layers):
        stripe = number if layer % 2 == 0 else number.T
        a, b = layer * sheet + stripe[:, :-1].ravel(), layer * sheet + stripe[:, 1:].ravel()
        stamps.append(conductance(a, b, rng.uniform(5, 20, a.size) * 2**layer))
        if layer > 0:
            via = layer * sheet + np.flatnonzero((rng.random(sheet) < 0.5) | (np.arange(sheet) == 0))
            stamps.append(conductance(via, via - sheet, rng.uniform(50, 200, via.size)))
    nodes = sheet * layers
    stamps.append(grounded(np.arange(nodes), rng.uniform(0.5e-15, 2e-15, nodes) / step))
    pad = nodes - sheet + rng.permutation(sheet)[: max(1, sheet // 100)]
    impedance = rng.uniform(0.5, 2, pad.size) * 1e-10 / step
    if not mna:
        return assemble([*stamps, grounded(pad, 1 / impedance)], nodes)
    supply, through, source = (nodes + k * pad.size + np.arange(pad.size) for k in range(3))
    stamps += [series_branch(pad, supply, through, -impedance), grounded_source(supply, source)]
    return assemble(stamps, nodes + 3 * pad.size)


def mesh_branches(rows: int, cols: int) -> tuple[Index, Index]:
    """Ends of the branches between neighbours of a mesh, horizontal ones first."""
    number = np.arange(rows * cols).reshape(rows, cols)
    ends = ((number[:, :-1], number[:, 1:]), (number[:-1], number[1:]))
    first, second = (np.concatenate([pair[k].ravel() for pair in ends]) for k in range(2))
    return first, second


def nearby_nodes(rng: np.random.Generator, rows: int, cols: int, count: int) -> Index:
    """Triples of nodes of a mesh at most two rows and columns apart, shape (count, 3)."""
    row = rng.integers(0, rows, (count, 1)) + rng.integers(0, 3, (count, 3))
    col = rng.integers(0, cols, (count, 1)) + rng.integers(0, 3, (count, 3))
    nodes: Index = np.minimum(row, rows - 1) * cols + np.minimum(col, cols - 1)
    return nodes


def conductance(a: Index, b: Index, value: NDArray[np.float64]) -> Stamp:
    """Resistors of the given conductance between nodes a and b."""
    rows, cols = np.concatenate([a, b, a, b]), np.concatenate([a, b, b, a])
    return rows, cols, np.concatenate([value, value, -value, -value])


def grounded(node: Index, value: NDArray[np.float64]) -> Stamp:
    """Conductances between nodes and ground."""
    return node, node, value


def series_branch(a: Index, b: Index, current: Index, diagonal: NDArray[np.float64]) -> Stamp:
    """Branches from a to b with a current among the unknowns."""
    one = np.ones(current.size)
    rows, cols = np.concatenate([a, b, current, current, current]), np.concatenate([current, current, a, b, current])
    return rows, cols, np.concatenate([one, -one, one, -one, diagonal])


def solved_branch(a: Index, b: Index, current: Index, value: NDArray[np.float64]) -> Stamp:
    """Branches of the given conductance from a to b, their rows solved for the current."""
    one = np.ones(current.size)
    rows, cols = np.concatenate([a, b, current, current, current]), np.concatenate([current, current, a, b, current])
    return rows, cols, np.concatenate([one, -one, -value, value, one])


def grounded_source(node: Index, current: Index) -> Stamp:
    """Voltage sources between nodes and ground, with zeros on the diagonal."""
    one = np.ones(current.size)
    return np.concatenate([node, current]), np.concatenate([current, node]), np.concatenate([one, one])


def controlled_source(nodes: Index, value: NDArray[np.float64]) -> Stamp:
    """Currents into node ``nodes[:, 0]`` controlled by the voltage from ``nodes[:, 1]`` to ``nodes[:, 2]``."""
    return np.tile(nodes[:, 0], 2), np.concatenate([nodes[:, 1], nodes[:, 2]]), np.concatenate([value, -value])


def assemble(stamps: Sequence[Stamp], n: int) -> csc_array:
    """Sum stamps into a canonical n x n matrix."""
    rows, cols, values = (np.concatenate(part) for part in zip(*stamps, strict=True))
    index = np.int32 if n < 2**31 else np.int64
    return coo_array((values, (rows.astype(index), cols.astype(index))), shape=(n, n)).tocsc()


def check_mesh(*sides: int) -> None:
    """Raise ValueError unless every side is a positive integer."""
    if any(side < 1 for side in sides):
        raise ValueError(f"shape={sides} must be positive integers")
