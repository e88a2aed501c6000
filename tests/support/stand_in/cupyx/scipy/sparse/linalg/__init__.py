"""Functions of another module, by value."""

from cupyx.scipy.sparse.linalg._solve import SuperLU as SuperLU
from cupyx.scipy.sparse.linalg._solve import factorized as factorized
from cupyx.scipy.sparse.linalg._solve import spilu as spilu
from cupyx.scipy.sparse.linalg._solve import splu as splu
from cupyx.scipy.sparse.linalg._solve import spsolve as spsolve
