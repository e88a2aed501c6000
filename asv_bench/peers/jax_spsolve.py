"""jax.experimental.sparse.linalg.spsolve: on the processor, SciPy's."""

from importlib.util import find_spec

BATCHES = False


def missing():
    return "" if find_spec("jax") else "JAX has to be installed"


def solver(A):
    """Its solve of a CSR matrix's values and a right-hand side."""
    from jax.experimental.sparse.linalg import spsolve

    return lambda values, b: spsolve(values, A.indices, A.indptr, b)
