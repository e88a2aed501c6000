"""The matrix of all ranks in PETSc: products, norms and residuals."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import NotHermitianError
from .rows import Rows

#: Prefix of options in PETSc's database: users can set them, and they do not collide with options of other code.
PREFIX = "gpusplu_"
# Of a product with A and one with its transpose, in units of the precision: assembled matrices differ by rounding.
SYMMETRIC = 1e3


class System:
    """A x = b over the ranks, with one vector of each kind that solves need.

    Parameters
    ----------
    transposed : bool, optional
        Take the transpose of the rows' matrix.
    own_communicator : bool, optional
        Of this system alone.

    Attributes
    ----------
    comm : mpi4py.MPI.Intracomm
    matrix : petsc4py.PETSc.Mat
    b, x, r, d : petsc4py.PETSc.Vec
        Right-hand side, solution, residual, correction.
    eps : float
        Of PETSc's numbers.
    """

    def __init__(
        self, petsc: Any, rows: Rows, hermitian: bool, *, transposed: bool = False, own_communicator: bool = False
    ):
        self._petsc, self._rows, self._hermitian = petsc, rows, hermitian
        sizes = (rows.count, rows.n)
        self._owned = rows.comm.Dup() if own_communicator else None
        self.comm = self._owned or rows.comm
        self.matrix = petsc.Mat().create(comm=self.comm)
        self.matrix.setSizes((sizes, sizes))
        self.matrix.setOptionsPrefix(PREFIX)
        self.matrix.setType("aij")
        i, j = rows.coordinates(petsc.IntType)
        self.matrix.setPreallocationCOO(*((j, i) if transposed else (i, j)))
        self.x, self.b = self.matrix.createVecs()
        self.r, self.d = self.b.duplicate(), self.x.duplicate()
        self.eps = float(np.finfo(petsc.ScalarType).eps)
        self._norms: dict[bool, float] = {}
        self.fill()

    def fill(self) -> None:
        """Copy the values of the rows into the matrix."""
        values = self._rows.entries(self._hermitian).astype(self._petsc.ScalarType, copy=False)
        self.matrix.setValuesCOO(values, self._petsc.InsertMode.INSERT_VALUES)
        self._norms.clear()

    def norm(self, transposed: bool) -> float:
        """Largest sum of absolute values in a row of A, or of its transpose."""
        if transposed not in self._norms:
            kind = self._petsc.NormType.NORM_1 if transposed else self._petsc.NormType.NORM_INFINITY
            self._norms[transposed] = self.matrix.norm(kind)
        return self._norms[transposed]

    def largest(self, vector: Any) -> float:
        """Largest absolute value of a vector; NaN where it has one."""
        return vector.norm(self._petsc.NormType.NORM_INFINITY)

    def measure(self, transposed: bool) -> float:
        """Put b - A x into r; its normwise backward error."""
        product = self.matrix.multTranspose if transposed else self.matrix.mult
        product(self.x, self.r)
        self.r.aypx(-1, self.b)
        size = self.norm(transposed) * self.largest(self.x) + self.largest(self.b)
        residual = self.largest(self.r)
        return residual / size if residual else 0.0

    def fill_random(self, vector: Any, number: int) -> None:
        """Normally distributed entries, other ones for every number and rank, the same in every run."""
        random = np.random.default_rng((number, self._rows.comm.rank, self._rows.n))
        vector.setArray(random.standard_normal(self._rows.count))

    def check_symmetry(self, kind: str) -> None:
        """Refuse a matrix if its triangles differ, which a product with random numbers shows.

        Raises
        ------
        NotHermitianError
        """
        self.fill_random(self.x, 0)
        self.matrix.mult(self.x, self.r)
        product = self.matrix.multHermitian if self._hermitian else self.matrix.multTranspose
        product(self.x, self.d)
        self.d.axpy(-1, self.r)
        if self.largest(self.d) > SYMMETRIC * self.eps * self.norm(False) * self.largest(self.x):
            what, other = ("Hermitian", "conjugate ") if self._hermitian else ("symmetric", "")
            raise NotHermitianError(
                f"{kind}: A and its {other}transpose differ, so A is not {what}; pass one triangle only, or use splu"
            )

    def destroy(self) -> None:
        for part in (self.matrix, self.x, self.b, self.r, self.d):
            part.destroy()
        if self._owned is not None:
            self._owned.Free()
