"""torch-sla: SciPy's SuperLU for torch, on the processor."""

from importlib.util import find_spec

BATCHES = False  # none that factor on the processor


def missing():
    return "" if find_spec("torch_sla") else "torch-sla has to be installed"


def solver(A):
    """Its solve of the values of a CSR matrix, one set or a batch, and of as many right-hand sides."""
    import numpy as np
    import torch
    import torch_sla

    rows = torch.from_numpy(np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)))
    columns = torch.from_numpy(A.indices.astype(np.int64))

    def solve(values, b):
        if values.ndim == 1:
            return torch_sla.spsolve(values, rows, columns, A.shape, b, backend="scipy", method="lu")
        return torch.stack([solve(*system) for system in zip(values, b, strict=True)])

    return solve
