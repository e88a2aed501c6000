"""Heat in a cube whose conductivity rises with time, on the ranks of a communicator:

    mpiexec -n 4 python examples/distributed.py

Every rank assembles its own rows, and no rank ever has the whole matrix. The pattern is analysed once; each implicit
step is a refactorization and a solve.
"""

from time import perf_counter

import numpy as np
import scipy.sparse as sp
from mpi4py import MPI

from gpusplu import distributed


def laplacian_rows(first, end, side):
    """Rows `first` to `end` of the seven-point Laplacian of a cube of side^3 nodes."""
    node = np.arange(first, end)
    place = np.stack(np.unravel_index(node, (side,) * 3))
    rows, columns, values = [node - first], [node], [np.full(node.size, 6.0)]
    for axis, stride in enumerate((side**2, side, 1)):
        for step in (-1, 1):
            inside = (place[axis] + step >= 0) & (place[axis] + step < side)
            rows.append(node[inside] - first)
            columns.append(node[inside] + step * stride)
            values.append(np.full(inside.sum(), -1.0))
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    return sp.csr_array(sp.coo_array(entries, shape=(end - first, side**3)))


def main(side=24, steps=10, comm=MPI.COMM_WORLD):
    cuts = np.linspace(0, side**3, comm.size + 1).astype(int)
    first, end = cuts[comm.rank : comm.rank + 2]
    K = laplacian_rows(first, end, side)
    diagonal = K.indices == np.repeat(np.arange(first, end), np.diff(K.indptr))

    def system(time):
        return np.where(diagonal, 1.0, 0.0) + 0.1 * (1 + time) * K.data

    heat = np.ones(end - first)
    start = perf_counter()
    with distributed.cholesky(sp.csr_array((system(0.0), K.indices, K.indptr), shape=K.shape), comm) as factor:
        factored = perf_counter()
        for step in range(steps):
            factor.refactor(system(0.1 * step))
            heat = factor.solve(heat)
        ended = perf_counter()
        left = comm.allreduce(heat.sum()) / side**3
        if comm.rank == 0:
            print(f"{side**3} unknowns on {comm.size} ranks: factored in {factored - start:.2f} s")
            print(f"{steps} steps in {ended - factored:.2f} s, backward error {factor.backward_error:.1e}")
            print(f"{left:.1%} of the heat is left")
            print(factor.explain())
    return left


if __name__ == "__main__":
    main()
