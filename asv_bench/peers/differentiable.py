"""Solvers for JAX and torch that the experiments `gradients` and `tensors` measure; `Peer` says what they have."""

import numpy as np

from . import Peer


class JaxSpsolve(Peer):
    """jax.experimental.sparse.linalg.spsolve: SciPy's on the processor."""

    package = "jax"

    def solver(self, A):
        """Its solve of a CSR matrix's values and a right-hand side."""
        from jax.experimental.sparse.linalg import spsolve

        return lambda values, b: spsolve(values, A.indices, A.indptr, b)


class Klujax(Peer):
    """klujax: KLU for JAX, one thread."""

    package, batches = "klujax", True

    def solver(self, A):
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


class Sparsax(Peer):
    """sparsax: KLU of SuiteSparse for JAX, which caches analyses and factors by their content; one thread."""

    package, batches = "sparsax", True

    def solver(self, A):
        """Its solve of a CSR matrix's values and a right-hand side."""
        import sparsax

        rows = np.repeat(np.arange(A.shape[0], dtype=np.int32), np.diff(A.indptr))
        columns = A.indices.astype(np.int32)
        return lambda values, b: sparsax.lu_solve(rows, columns, values, b)


class TorchSla(Peer):
    """torch-sla: SciPy's SuperLU for torch, on the processor; no batches there."""

    package = "torch_sla"

    def solver(self, A):
        """Its solve of the values of a CSR matrix, one set or a batch, and of as many right-hand sides."""
        import torch
        import torch_sla

        rows = torch.from_numpy(np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)))
        columns = torch.from_numpy(A.indices.astype(np.int64))

        def solve(values, b):
            if values.ndim == 1:
                return torch_sla.spsolve(values, rows, columns, A.shape, b, backend="scipy", method="lu")
            return torch.stack([solve(*system) for system in zip(values, b, strict=True)])

        return solve
