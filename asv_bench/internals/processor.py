"""Stages and methods of the core by themselves."""

import sys
from pathlib import Path

import numpy as np

from gpusplu import _core
from gpusplu.common.traits import structure_of
from gpusplu.cost.calibration import costs_of, for_core
from gpusplu.cost.features import factor_features
from gpusplu.cost.processor import predict

num_threads = _core.num_threads


def set_num_threads(count):
    """For the core, and for the stages of it, which have threads of their own."""
    _core.set_num_threads(count)
    if "gpusplu._core_testing" in sys.modules:
        stages().set_num_threads(count)


def stages():
    """Stages of the core by themselves; only a checkout has them."""
    import gpusplu

    checkout = str(Path(__file__).parents[2] / "gpusplu")
    if checkout not in gpusplu.__path__:
        gpusplu.__path__.append(checkout)
    new = "gpusplu._core_testing" not in sys.modules
    from gpusplu import _core_testing

    if new:
        _core_testing.set_num_threads(_core.num_threads())
    return _core_testing


def minimum_degree(ptr, ind):
    return stages().amd(ptr, ind)


def nested_dissection(*arguments, **options):
    return stages().nested_dissection(*arguments, **options)


def ordering_cost(ptr, ind, perm):
    """Entries of L, flops, levels."""
    return stages().ordering_cost(ptr, ind, perm)


def time_front(*arguments, **options):
    return stages().time_front(*arguments, **options)


def graph_of(A):
    """ptr (int64) and ind (int32) of A + A^T without its diagonal."""
    return tuple(map(np.asarray, stages().symmetrize(A.indptr.astype(np.int64), A.indices.astype(np.int32))))


def analysis(A, definite):
    """A function that analyses A on the processor: seconds by stage, ordering and entries of L."""
    pattern = _core.canonical_from_columns(A.shape[0], A.indptr, A.indices)

    def analyze():
        symbolic = _core.analyze(pattern.ptr, pattern.ind, A.data, for_core(), cholesky=definite)
        return dict(symbolic.stages), symbolic.ordering, symbolic.lnz

    return analyze


def method_phases(A, method):
    """Features of the model of a method of the CPU engine, what it predicts, and functions: factor, refactor, solve."""
    ptr, ind, values = A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data
    how = {"ldlt": True} if method == "ldlt" else {"method": method}
    symbolic = _core.analyze(ptr, ind, values, for_core(), **how)
    pattern = _core.canonical_from_columns(A.shape[0], A.indptr, A.indices)
    factor = _core.factor(symbolic, pattern, values)
    b = A @ np.ones(A.shape[0])
    structure = structure_of(symbolic, A.nnz, values.itemsize)
    features = [*map(factor_features(structure).get, ("call", "rows", "entries", "fill", "flops"))]
    predicted = predict(structure, costs_of())[2:5]
    calls = lambda: _core.factor(symbolic, pattern, values), lambda: factor.refactor(values), lambda: factor.solve(b)
    return features, predicted, calls
