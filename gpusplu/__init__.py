"""Sparse direct solvers with SciPy's signatures."""

__version__ = "0.1.0"
