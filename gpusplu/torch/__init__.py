"""Sparse solves and determinants that torch can differentiate.

>>> import gpusplu.torch as gst
>>> x = gst.spsolve(A, b)
>>> x.square().sum().backward()
>>> A.grad, b.grad
"""

from __future__ import annotations

from .determinants import SlogDet, slogdet
from .pattern import Pattern
from .solve import Solver, factorized, spsolve

__all__ = ["Pattern", "SlogDet", "Solver", "factorized", "slogdet", "spsolve"]
