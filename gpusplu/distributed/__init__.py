"""Factors of matrices that are spread over the ranks of an MPI communicator, by MUMPS or SuperLU_DIST with petsc4py.

>>> import gpusplu.distributed as gd
>>> lu = gd.splu(rows, MPI.COMM_WORLD)  # rows: those of this rank, SciPy CSR, columns of the whole matrix
>>> x = lu.solve(b)  # the parts of this rank

Every function and method is called by all ranks together. If one rank raises, all raise the same exception.
Nothing here needs the compiled core.
"""

from .calls import cholesky, ldlt, splu
from .factor import DistributedCholeskyFactor, DistributedFactor, DistributedLDLFactor, DistributedLUFactor

__all__ = [
    "DistributedCholeskyFactor",
    "DistributedFactor",
    "DistributedLDLFactor",
    "DistributedLUFactor",
    "cholesky",
    "ldlt",
    "splu",
]
