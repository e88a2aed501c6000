"""Eigenvalues near a number, by scipy.sparse.linalg.eigsh, which factors the shifted matrix."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh
from sklearn import manifold
from sklearn.neighbors import kneighbors_graph


def shifted(n):
    """Lowest frequencies of a box of n x n x 2n cells."""
    line, long = (second_difference(k) for k in (n, 2 * n))
    stiffness = sp.csc_array(sp.kronsum(sp.kronsum(line, line), long))
    begin = np.random.default_rng(0).normal(size=stiffness.shape[0])
    return lambda: eigsh(stiffness, k=12, sigma=0.0, v0=begin)[0]


def second_difference(n):
    return (n + 1) ** 2 * sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])


def spectral_embedding(n):
    """Points of a rolled up surface laid out by their neighbours, by scikit-learn."""
    rng = np.random.default_rng(0)
    angle = 1.5 * np.pi * (1 + 2 * rng.uniform(size=n))
    points = np.stack([angle * np.cos(angle), 20 * rng.uniform(size=n), angle * np.sin(angle)], axis=1)

    def run():
        graph = kneighbors_graph(points, 10, include_self=False)
        return abs(manifold.spectral_embedding(graph + graph.T, n_components=4, eigen_solver="arpack", random_state=0))

    return run
