"""Fitting a circuit: the resistances and capacitances of a mesh, found from voltages that were measured at its nodes.

A current is driven into a corner at several frequencies. Each frequency is a complex system on the pattern of the mesh,
so that one step is a batch of solves, and its gradient another one with the same factors.
"""

import numpy as np
import scipy.sparse as sp
import torch

import gpusplu as gs
import gpusplu.torch as gst


class Mesh:
    """Resistors between neighbours of side x side nodes, and a capacitor from each node to ground."""

    def __init__(self, side):
        node = np.arange(side * side).reshape(side, side)
        first = np.r_[node[:, :-1].ravel(), node[:-1].ravel()]
        second = np.r_[node[:, 1:].ravel(), node[1:].ravel()]
        self.nodes, self.resistors = node.size, first.size
        resistor, capacitor = np.arange(first.size), first.size + np.arange(node.size)
        rows = np.r_[first, second, first, second, node.ravel()]
        columns = np.r_[first, second, second, first, node.ravel()]
        pattern = sp.coo_array((np.ones(rows.size), (rows, columns))).tocsr()
        number = sp.csr_array((np.arange(1, pattern.nnz + 1), pattern.indices, pattern.indptr))
        self.place = torch.from_numpy(number[rows, columns] - 1)  # where each stamp goes
        self.branch = torch.from_numpy(np.r_[resistor, resistor, resistor, resistor, capacitor])
        self.sign = torch.from_numpy(np.repeat([1.0, -1.0, 1.0], [2 * first.size, 2 * first.size, node.size]))
        arrays = (torch.from_numpy(one) for one in (pattern.indptr, pattern.indices, pattern.data))
        self.pattern = gst.Pattern(torch.sparse_csr_tensor(*arrays, pattern.shape))

    def voltages(self, conductance, capacitance, frequencies):
        """Shape (frequencies, nodes), for a current of 1 into node 0."""
        real = conductance.expand(len(frequencies), -1) + 0j
        admittance = torch.cat([real, 1j * frequencies[:, None] * capacitance], 1)
        stamps = self.sign * admittance[:, self.branch]
        values = stamps.new_zeros(len(frequencies), int(self.place.max()) + 1).index_add(1, self.place, stamps)
        current = torch.zeros(self.nodes, dtype=values.dtype)
        current[0] = 1
        return gst.spsolve(self.pattern, current, values=values)


def fit(mesh, measured, frequencies, steps):
    """Logarithms of conductances and capacitances by L-BFGS; the misfit after each step."""
    logarithms = torch.zeros(mesh.resistors + mesh.nodes, dtype=torch.float64, requires_grad=True)
    options = {"history_size": 40, "line_search_fn": "strong_wolfe", "tolerance_change": 0}
    optimizer = torch.optim.LBFGS([logarithms], max_iter=steps, **options)
    misfits = []

    def closure():
        optimizer.zero_grad()
        conductance, capacitance = logarithms.exp().split([mesh.resistors, mesh.nodes])
        difference = mesh.voltages(conductance, capacitance, frequencies) - measured
        misfit = (difference.abs() / measured.abs()).square().mean()
        misfit.backward()
        misfits.append(misfit.item())
        return misfit

    optimizer.step(closure)
    return logarithms.detach(), misfits


def main(side=5, steps=300):
    mesh = Mesh(side)
    generator = torch.Generator().manual_seed(0)
    truth = 0.3 * torch.randn(mesh.resistors + mesh.nodes, dtype=torch.float64, generator=generator)
    frequencies = torch.logspace(-2, 1, 8, dtype=torch.float64)
    measured = mesh.voltages(*truth.exp().split([mesh.resistors, mesh.nodes]), frequencies)
    before = gs.factorization_count()
    found, misfits = fit(mesh, measured, frequencies, steps)
    made = gs.factorization_count() - before
    error = float((found - truth).abs().median())
    print(f"{truth.numel()} parameters: misfit {misfits[0]:.1e} before, {misfits[-1]:.1e} after {len(misfits)} steps")
    print(f"half of the parameters within {error:.1%}; {made} factorizations, none of them for a gradient")
    return misfits, error, made


if __name__ == "__main__":
    main()
