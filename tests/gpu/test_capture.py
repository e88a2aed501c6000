"""Graphs of the caller's on a real device only; tests/emulated/test_capture.py has what runs in the emulator too."""

import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.arrays import StreamOfOthers
from support.front_plans import limit_between
from support.newton import Newton
from support.small_matrices import EPS, canonical, rhs

pytestmark = pytest.mark.gpu
STEPS = 1000


def test_two_factors_of_a_circuit(cupy):
    mesh = gallery.named("rlc:40x40")
    A = canonical(
        sp.csc_array(mesh + 4 * sp.eye_array(mesh.shape[0]))
    )  # whose pivots stay good for all values of the steps
    first, second = (Newton(cupy.asarray, engine, A=A) for engine in ("supernodal", "sflu"))
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        for newton in (first, second):
            newton.assemble()
            newton.solve()
            newton.x[...], newton.time[...] = 0, 0
        stream.begin_capture()
        for newton in (first, second):
            newton.assemble()
            newton.solve()
        graph = stream.end_capture()
        for _ in range(STEPS):
            graph.launch(stream)
        stream.synchronize()
        for newton in (first, second):
            assert 0 < newton.factor.check() < 100 * EPS["d"]
    for newton, engine in ((first, "supernodal"), (second, "sflu")):
        assert newton.x.get().tobytes() == Newton(cupy.asarray, engine, A=A).run(STEPS)[-1].tobytes()


def test_factors_that_stream(cupy):
    A = gallery.named("convdiff:20")
    whole = gs.splu(A, engine="supernodal")
    factor = gs.splu(A, engine="supernodal", device_memory=limit_between(whole.symbolic, 0.1))
    assert factor.stats.n_windows > 1
    values, b = cupy.asarray(A.data), cupy.asarray(rhs(A.shape[0]))
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        x = factor.refactor_solve(values, b, check="later")
        stream.begin_capture()
        factor.refactor_solve(values, b, check="later", out=x)
        graph = stream.end_capture()
        for scale in (2, 3):
            values[...] = scale * cupy.asarray(A.data)
            graph.launch(stream)
            stream.synchronize()
            assert (x == whole.refactor_solve(values, b)).all()
        assert factor.check() < 100 * EPS["d"]


def test_in_a_graph_of_pytorch(cupy):
    """PyTorch captures with the strictest mode, on a stream of its own."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch without CUDA")
    newton = Newton(cupy.asarray, "supernodal")
    cupy.cuda.Device().synchronize()
    side = torch.cuda.Stream()
    same = cupy.cuda.Stream.from_external(StreamOfOthers(side.cuda_stream))
    with same:
        newton.assemble()
        newton.solve()
        newton.x[...], newton.time[...] = 0, 0
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side), same:
        newton.assemble()
        newton.solve()
    for _ in range(STEPS):
        graph.replay()
    torch.cuda.synchronize()
    assert newton.factor.check() < 100 * EPS["d"]
    assert newton.x.get().tobytes() == Newton(cupy.asarray, "supernodal").run(STEPS)[-1].tobytes()
