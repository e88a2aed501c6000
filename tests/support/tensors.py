"""Sparse tensors for tests of gpusplu.torch, and what torch itself says of the same systems."""

import numpy as np
import scipy.sparse as sp
import torch

import gpusplu.torch as gst

#: What torch says about itself.
WARNINGS = (
    "Sparse (CSR|CSC) tensor support is in beta",
    "Sparse invariant checks are implicitly disabled",
    "`torch.jit.script` is deprecated",
)

LAYOUTS = {"csr": "to_sparse_csr", "csc": "to_sparse_csc", "coo": "to_sparse_coo"}
DTYPES = (torch.float64, torch.complex128)
OPERATIONS = {"N": lambda D: D, "T": lambda D: D.mT, "H": lambda D: D.mH}


def numbers(*shape, dtype=torch.float64, device="cpu", seed=0):
    made = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))
    return made.to(device)


def sparse(n=6, dtype=torch.float64, layout="csr", device="cpu", seed=0):
    """A well-conditioned matrix without symmetry."""
    rng = np.random.default_rng(seed)
    where = (sp.random(n, n, 0.3, rng=rng) + sp.eye(n)).toarray() != 0
    dense = torch.from_numpy(where) * numbers(n, n, dtype=dtype, seed=seed) + 4 * torch.eye(n, dtype=dtype)
    return getattr(dense, LAYOUTS[layout])().to(device)


def on_pattern(n=6, dtype=torch.float64, device="cpu", nbatch=None):
    """A pattern, and values on it that want a gradient."""
    A = sparse(n, dtype, device=device)
    values = A.values()
    if nbatch is not None:
        values = values * torch.arange(1, nbatch + 1, device=device)[:, None] + 0.1
    return gst.Pattern(A), values.detach().clone().requires_grad_()


def dense(pattern, values):
    """The matrix of values on a pattern, by means that torch differentiates."""
    where = torch.stack(pattern.coordinates())
    zeros = values.new_zeros(*values.shape[:-1], pattern.n, pattern.n)
    if values.ndim == 1:
        return zeros.index_put(tuple(where), values)
    return torch.stack([dense(pattern, one) for one in values])


def close(got, expected, tolerance=1e-12):
    assert got.shape == expected.shape
    assert got.device == expected.device
    assert got.dtype == expected.dtype
    got, expected = got.detach(), expected.detach()
    assert (got - expected).abs().max() <= tolerance * max(1.0, float(expected.abs().max()))
