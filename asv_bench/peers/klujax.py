"""klujax: KLU for JAX, one thread."""

from importlib.util import find_spec

import numpy as np

BATCHES = True


def missing():
    return "" if find_spec("klujax") else "klujax has to be installed"


def solver(A):
    """Its solve of a CSR matrix's values and a right-hand side, with the analysis made beforehand."""
    import jax
    import klujax

    rows = np.repeat(np.arange(A.shape[0], dtype=np.int32), np.diff(A.indptr))
    columns = A.indices.astype(np.int32)
    analysis = klujax.analyze(rows, columns, A.shape[0])

    def solve(values, b):
        index = jax.lax.optimization_barrier((rows, columns))  # or XLA sorts them for minutes while it compiles
        return klujax.solve_with_symbol(*index, values, b, analysis)

    return solve
