"""Circuits: modified nodal analysis (MNA) of meshes, one step of an implicit time integration each.

Unknowns are node voltages, then branch currents. A branch of resistance R and inductance L between nodes a and b has
the row ``v_a - v_b - (R + L / step) i = history``; a capacitor to ground adds ``C / step`` to its node's diagonal.

`Circuit` is nonlinear and has a fixed pattern: the systems of a circuit simulator's Newton steps. Its devices are
smooth models of their kind, not of a process: a diode with its exponential continued as a straight line where it would
overflow, and the symmetric transistor of Enz, Krummenacher and Vittoz (Analog Integrated Circuits and Signal
Processing, 1995, eq. 9), ``i = 2 k [f(v_gate - v_t - v_source) - f(v_gate - v_t - v_drain)]`` with
``f(v) = log(1 + exp(v / w))^2``.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array

Index = NDArray[np.int64]
Vector = NDArray[np.float64]
Stamp = tuple[Index, Index, Vector]  # rows, columns, values: one part of a matrix in coordinate form


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
        branch(a[has_inductor], b[has_inductor], current, -impedance),
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
        branch(a, b, current, 1.0, -1 / impedance),
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
    stamps += [branch(pad, supply, through, -impedance), grounded_source(supply, source)]
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
    return np.minimum(row, rows - 1) * cols + np.minimum(col, cols - 1)


def conductance(a: Index, b: Index, value: NDArray[np.float64]) -> Stamp:
    """Resistors of the given conductance between nodes a and b."""
    rows, cols = np.concatenate([a, b, a, b]), np.concatenate([a, b, b, a])
    return rows, cols, np.concatenate([value, value, -value, -value])


def grounded(node: Index, value: NDArray[np.float64]) -> Stamp:
    """Conductances between nodes and ground."""
    return node, node, value


def branch(a: Index, b: Index, current: Index, diagonal: Any, coupling: Any = 1.0) -> Stamp:
    """Branches from a to b with a current among the unknowns: ``coupling (v_a - v_b) + diagonal i = history``."""
    rows, cols = np.concatenate([a, b, current, current, current]), np.concatenate([current, current, a, b, current])
    values = [np.broadcast_to(value, current.size) for value in (1.0, -1.0, coupling, -coupling, diagonal)]
    return rows, cols, np.concatenate(values)


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


# Diode: saturation current [A], thermal voltage [V], and where the exponential ends [V]
SATURATION, THERMAL, KNEE = 1e-14, 0.02585, 0.75
# Transistor: current factor [A], threshold [V], width of the transition [V]
GAIN, THRESHOLD, WIDTH = 2e-3, 0.4, 0.08


class Circuit:
    """A mesh of RLC branches with diodes and transistors, integrated by backward Euler.

    The equations at time t with the step h behind it are ``G x + C (x - x_previous) / h + i(x) - s(t) = 0``.

    Attributes
    ----------
    n : int
        Unknowns: node voltages, then currents of inductors, then of sources.
    indptr, indices : ndarray of int32
        Pattern of the Jacobian in canonical CSC; :meth:`stamp` gives values in this order.
    nodes : int
        How many of the unknowns are voltages.

    See Also
    --------
    circuit : makes one.

    Examples
    --------
    >>> mesh = gs.gallery.circuit(6, 6)
    >>> mesh.nodes
    36
    """

    def __init__(self, rows: int, cols: int, seed: int) -> None:
        check_mesh(rows, cols)
        rng = np.random.default_rng(seed)
        self.nodes = nodes = rows * cols
        a, b = mesh_branches(rows, cols)
        has_inductor = rng.random(a.size) < 0.3
        inductors = int(has_inductor.sum())
        self.source_nodes = rng.permutation(nodes)[: max(2, nodes // 400)]
        self.phase = rng.uniform(0, 2 * np.pi, self.source_nodes.size)
        current = nodes + np.arange(inductors)
        self.sources = nodes + inductors + np.arange(self.source_nodes.size)
        self.n = nodes + inductors + self.source_nodes.size
        static: list[Stamp] = [
            grounded(np.arange(nodes), np.full(nodes, 1e-6)),
            conductance(a[~has_inductor], b[~has_inductor], 1 / rng.uniform(50, 500, a.size - inductors)),
            branch(a[has_inductor], b[has_inductor], current, -rng.uniform(5, 50, inductors)),
            grounded_source(self.source_nodes, self.sources),
        ]
        dynamic = [
            grounded(np.arange(nodes), rng.uniform(0.5e-12, 2e-12, nodes)),
            grounded(current, -rng.uniform(0.5e-9, 2e-9, inductors)),
        ]
        self.diode = np.flatnonzero(rng.random(nodes) < 0.1)
        self.drain, self.gate, self.source = transistor_places(rng, cols, nodes)
        self._compile(static, dynamic)

    def _compile(self, static: list[Stamp], dynamic: list[Stamp]) -> None:
        """Fix the pattern, and the maps from device conductances to its entries."""
        d, g, s = self.drain, self.gate, self.source
        rows = np.concatenate([self.diode, d, s, d, s, d, s])
        cols = np.concatenate([self.diode, g, g, d, d, s, s])
        self.static, self.dynamic = assemble(static, self.n).tocsr(), assemble(dynamic, self.n).tocsr()
        places = [(rows, cols)] + [(part.row, part.col) for part in (self.static.tocoo(), self.dynamic.tocoo())]
        every_row, every_col = (np.concatenate([place[k] for place in places]) for k in range(2))
        keys, where = np.unique(every_col.astype(np.int64) * self.n + every_row, return_inverse=True)
        self.indices = (keys % self.n).astype(np.int32)
        self.indptr = np.searchsorted(keys, np.arange(self.n + 1) * self.n).astype(np.int32)
        device, static_entry, dynamic_entry = np.split(where, np.cumsum([rows.size, self.static.nnz]))
        self.static_values, self.dynamic_values = (
            np.bincount(entry, part.data, keys.size)
            for entry, part in ((static_entry, self.static), (dynamic_entry, self.dynamic))
        )
        self.to_values = coo_map(device, keys.size)
        self.to_residual = coo_map(np.concatenate([self.diode, d, s]), self.n)

    def stamp(self, x: Vector, previous: Vector, time: float, step: float) -> tuple[Vector, Vector]:
        """Jacobian values and residual of one Newton step.

        Parameters
        ----------
        x : ndarray, shape (n,)
            Where to linearize.
        previous : ndarray, shape (n,)
            The solution one step earlier.
        time, step : float
            [s]

        Returns
        -------
        values : ndarray
            Of the Jacobian, in the order of `indices`.
        residual : ndarray, shape (n,)

        See Also
        --------
        Circuit.matrix

        Examples
        --------
        >>> mesh = gs.gallery.circuit(6, 6)
        >>> values, residual = mesh.stamp(mesh.rest(), mesh.rest(), 1e-11, 1e-11)
        >>> lu = gs.splu(mesh.matrix(values))
        >>> x = mesh.rest() - lu.solve(residual)  # the first step of Newton
        """
        diode_current, diode_slope = diode_model(x[self.diode])
        current, by_gate, by_drain, by_source = transistor_model(x[self.drain], x[self.gate], x[self.source])
        slopes = [diode_slope, by_gate, -by_gate, by_drain, -by_drain, by_source, -by_source]
        values = self.static_values + self.dynamic_values / step + self.to_values @ np.concatenate(slopes)
        residual = self.static @ x + self.dynamic @ (x - previous) / step
        residual += self.to_residual @ np.concatenate([diode_current, current, -current])
        residual[self.sources] -= np.sin(2e9 * np.pi * time + self.phase) * min(1.0, time / 1e-10)
        return values, residual

    def rest(self) -> Vector:
        """The state at time 0: everything is zero.

        Examples
        --------
        >>> mesh = gs.gallery.circuit(6, 6)
        >>> mesh.rest().shape == (mesh.n,)
        True
        """
        return np.zeros(self.n)

    def matrix(self, values: Vector | None = None) -> csc_array:
        """The Jacobian with the given values; without any, at rest with a step of 10 ps.

        See Also
        --------
        Circuit.stamp

        Examples
        --------
        >>> mesh = gs.gallery.circuit(6, 6)
        >>> gs.splu(mesh.matrix()).shape == (mesh.n, mesh.n)
        True
        """
        if values is None:
            values, _ = self.stamp(self.rest(), self.rest(), 0.0, 1e-11)
        return csc_array((values, self.indices, self.indptr), shape=(self.n, self.n))


def circuit(rows: int, cols: int, *, seed: int = 0) -> Circuit:
    """A nonlinear circuit on a mesh: RLC branches, diodes, transistors and sine sources.

    Parameters
    ----------
    rows, cols : int
        Nodes along each side.
    seed : int
        Of component values and places.

    Returns
    -------
    Circuit

    Examples
    --------
    One backward Euler step of 10 ps:

    >>> from gpusplu import gallery
    >>> ckt = gallery.circuit(20, 20)
    >>> values, residual = ckt.stamp(ckt.rest(), ckt.rest(), 1e-11, 1e-11)
    >>> ckt.matrix(values).shape == (ckt.n, ckt.n)
    True
    """
    return Circuit(rows, cols, seed)


def diode_model(v: Vector) -> tuple[Vector, Vector]:
    """Current [A] and conductance [S] of a diode at voltage v; a straight line above the knee."""
    exponential = np.exp(np.minimum(v, KNEE) / THERMAL)
    slope = SATURATION / THERMAL * exponential
    return SATURATION * (exponential - 1) + slope * np.maximum(v - KNEE, 0), slope


def transistor_model(drain: Vector, gate: Vector, source: Vector) -> tuple[Vector, Vector, Vector, Vector]:
    """Current into the drain [A] and its derivatives by gate, drain and source voltage [S]."""
    forward, forward_slope = inversion(gate - THRESHOLD - source)
    reverse, reverse_slope = inversion(gate - THRESHOLD - drain)
    by_gate = forward_slope - reverse_slope
    return GAIN * (forward - reverse), GAIN * by_gate, GAIN * reverse_slope, -GAIN * forward_slope


def inversion(v: Vector) -> tuple[Vector, Vector]:
    """``log(1 + exp(v / w))^2`` and its derivative, without overflow."""
    level = np.logaddexp(0, v / WIDTH)
    return level**2, 2 * level / WIDTH * np.exp(-np.logaddexp(0, -v / WIDTH))


def transistor_places(rng: np.random.Generator, cols: int, nodes: int) -> Index:
    """Drain, gate and source of nodes // 10 transistors, each between three nodes that are close on the mesh."""
    place = rng.integers(0, nodes, (nodes // 10, 1))
    offsets = np.tile([0, 1, cols, cols + 1, 2, 2 * cols], (place.size, 1))
    terminals: Index = (place + rng.permuted(offsets, axis=1)[:, :3]) % nodes
    return terminals.T


def coo_map(target: Index, size: int) -> csr_array:
    """The matrix that adds entry k of a vector into entry target[k] of a vector of the given size."""
    count = target.size
    return coo_array((np.ones(count), (target, np.arange(count))), shape=(size, count)).tocsr()
