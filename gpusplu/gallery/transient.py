"""A nonlinear circuit with a fixed pattern: the systems of a circuit simulator's Newton steps.

The devices are smooth models of their kind, not of a process: a diode with its exponential continued as a straight
line where it would overflow, and the symmetric transistor of Enz, Krummenacher and Vittoz (Analog Integrated Circuits
and Signal Processing, 1995, eq. 9), ``i = 2 k [f(v_gate - v_t - v_source) - f(v_gate - v_t - v_drain)]`` with
``f(v) = log(1 + exp(v / w))^2``.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array

from .circuits import (
    Index,
    Stamp,
    assemble,
    check_mesh,
    conductance,
    grounded,
    grounded_source,
    mesh_branches,
    series_branch,
)

Vector = NDArray[np.float64]

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
            series_branch(a[has_inductor], b[has_inductor], current, -rng.uniform(5, 50, inductors)),
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
