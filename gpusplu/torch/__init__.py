"""Sparse solves and determinants that torch can differentiate.

>>> import torch
>>> import gpusplu.torch as gst
>>> A = torch.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=torch.float64).to_sparse_csr().requires_grad_()
>>> x = gst.spsolve(A, torch.ones(2, dtype=torch.float64))
>>> x.square().sum().backward()
>>> A.grad.layout
torch.sparse_csr
"""

from __future__ import annotations

from .functions import SlogDet, slogdet
from .pattern import Pattern
from .solve import Solver, factorized, spsolve

__all__ = ["Pattern", "SlogDet", "Solver", "factorized", "slogdet", "spsolve"]
