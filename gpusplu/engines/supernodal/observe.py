"""Measurements for fitting the constants of the supernodal engine and of devices."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np
import scipy.sparse as sp

from ... import gallery
from ...common.matrix import to_device
from ...common.timing import repeated, synchronizer
from ...cost.features import factor_features, move_features, start_features
from ...cost.observation import Observation, Observations, excess, net_of_solve
from ...cuda import devices
from ...cuda.nvrtc import compile_kernels
from ..interface import Measure
from .predict import plan_features


def observe_fronts(name: str, measure: Measure, budget: float) -> Observations:
    """Measure the engine on a matrix of the gallery, and the cost of values and vectors on the other side."""
    A = gallery.named(name)
    on_device, on_host = measure("supernodal", True), measure("supernodal", False)
    if isinstance(on_device, str) or isinstance(on_host, str):
        return {}
    problem, analysis = on_device.factor_object.symbolic.parts()
    structure, plan = problem.structure(analysis.core), plan_features(analysis.plan)
    return {
        "start.analyze": [Observation(factor_features(structure), min(on_device.analyze, on_host.analyze))],
        "supernodal.refactor": [Observation(plan, net_of_solve(on_device.refactor, on_device.solve, on_device.step))],
        "supernodal.solve": [Observation(plan, on_device.solve)],
        **excess("start.factor", start_features(structure), min(on_device.factor, on_host.factor), on_device.refactor),
        **excess("move.to_device", move_features(structure), on_host.step, on_device.step),
        "move.to_host": [Observation(move_features(structure), seconds_to_host(A, budget))],
    }


def observe_compiler(files: tuple[str, ...]) -> Observations:
    """Measure the compilation of an engine's kernels, without the cache."""
    device = devices.open_device()
    start = perf_counter()
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda file: compile_kernels(file, "d", 0, device.arch), files))
    return {"start.compile": [Observation({"call": 1.0}, perf_counter() - start)]}


def seconds_to_host(A: sp.csc_array, budget: float) -> float:
    """Seconds to copy values and a right-hand side from the device, and a solution to it."""
    x = np.ones(A.shape[0], A.dtype)
    values, b = to_device(A.data), to_device(x)
    return repeated(lambda: (values.get(), b.get(), to_device(x)), budget, synchronizer())
