"""Newton's method in a graph of the caller's, on a device: kernels of CuPy's and calls with check="later"."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.arrays import StreamOfOthers
from gpusplu.common.timing import backward_error
from support.small_matrices import EPS, canonical, rhs
from support.streaming import limit_between

pytestmark = pytest.mark.gpu

ENGINES = ["supernodal", "glu", "sflu", "crisscross"]
STEPS = 1000

ASSEMBLE = """
extern "C" __global__ void assemble(int n, const long long* ptr, const int* ind, const int* place, const double* a,
                                    const long long* diagonal, const double* b, const double* x, const int* time,
                                    int spoilt, double* values, double* residual) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    double sum = sin(*time / 50.) * b[i] - x[i] * x[i] * x[i];
    for (long long p = ptr[i]; p < ptr[i + 1]; p++) {
      const double value = a[place[p]];
      sum -= value * x[ind[p]];
      values[place[p]] = *time == spoilt ? nan("") : value + (place[p] == diagonal[i] ? 3 * x[i] * x[i] : 0);
    }
    residual[i] = sum;
  }
}
extern "C" __global__ void update(int n, const double* step, double* x, int* time) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] += step[i];
  if (blockIdx.x == 0 && threadIdx.x == 0) ++*time;
}
"""


class Newton:
    """One step a time step for A x + x^3 = sin(t / 50) b."""

    def __init__(self, cupy, A, make=gs.splu, engine="supernodal", spoilt=-1):
        self.A, n = A, A.shape[0]
        self.factor = make(A, engine=engine)
        rows = sp.csr_array(sp.csc_array((np.arange(A.nnz, dtype=np.int32), A.indices, A.indptr), shape=A.shape))
        diagonal = np.flatnonzero(A.indices == np.repeat(np.arange(n), np.diff(A.indptr)))
        module = cupy.RawModule(code=ASSEMBLE)
        self.assemble_kernel, self.update_kernel = module.get_function("assemble"), module.get_function("update")
        self.b, self.n = rhs(n), n
        arrays = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, A.data, diagonal, self.b
        self.arrays = tuple(map(cupy.asarray, arrays))
        self.values, self.time = cupy.asarray(A.data), cupy.ones(1, "i4")
        self.x, self.residual, self.step = (cupy.zeros(n) for _ in range(3))
        self.spoilt = np.int32(spoilt)

    def assemble(self):
        args = (np.int32(self.n), *self.arrays, self.x, self.time, self.spoilt, self.values, self.residual)
        self.assemble_kernel((64,), (256,), args)

    def update(self):
        self.update_kernel((64,), (256,), (np.int32(self.n), self.step, self.x, self.time))

    def advance(self):
        """A step that nobody waits for."""
        self.assemble()
        self.factor.refactor_solve(self.values, self.residual, check="later", out=self.step)
        self.update()

    def restart(self):
        self.x[...], self.time[...] = 0, 1

    def capture(self, stream):
        """A step in a graph, after one that was not captured."""
        with stream:
            self.advance()
            self.restart()
            stream.begin_capture()
            try:
                self.advance()
            finally:
                graph = stream.end_capture()
        stream.synchronize()
        assert self.factor.check() is not None
        return graph

    def waited_for(self, steps):
        for _ in range(steps):
            self.assemble()
            self.step[...] = self.factor.refactor_solve(self.values, self.residual)
            self.update()
        return self.x.get()

    def error(self):
        """What is left of the equations."""
        x, time = self.x.get(), int(self.time.get()[0]) - 1
        return abs(self.A @ x + x**3 - np.sin(time / 50) * self.b).max()


def circuit():
    return canonical(gallery.named("rlc:40x40"))


def launch(graph, stream, times):
    for _ in range(times):
        graph.launch(stream)
    stream.synchronize()


@pytest.mark.parametrize("engine", ENGINES)
def test_newton_with_no_host_in_it(cupy, engine):
    newton, stream = Newton(cupy, circuit(), engine=engine), cupy.cuda.Stream(non_blocking=True)
    graph = newton.capture(stream)
    launch(graph, stream, STEPS)
    with stream:
        assert 0 < newton.factor.check() < 100 * EPS["d"]
    assert newton.factor.stats.n_refactor == STEPS + 1
    expected = Newton(cupy, newton.A, engine=engine).waited_for(STEPS)
    if engine == "glu":  # whose sums differ in their last bits
        np.testing.assert_allclose(newton.x.get(), expected, rtol=1e-9, atol=1e-12)
    else:
        assert newton.x.get().tobytes() == expected.tobytes()
    assert newton.error() < 1e-2


def test_cholesky_in_a_graph(cupy):
    A = canonical(gallery.poisson(60, 60))
    newton, stream = Newton(cupy, A, gs.cholesky), cupy.cuda.Stream(non_blocking=True)
    launch(newton.capture(stream), stream, STEPS)
    expected = Newton(cupy, A, gs.cholesky).waited_for(STEPS)
    assert newton.x.get().tobytes() == expected.tobytes()
    assert 0 < newton.factor.check() < 100 * EPS["d"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_nan_in_replay_500_is_not_forgotten(cupy, engine):
    newton, stream = Newton(cupy, circuit(), engine=engine, spoilt=500), cupy.cuda.Stream(non_blocking=True)
    graph = newton.capture(stream)
    launch(graph, stream, 500)
    newton.x[...] = 0
    cupy.cuda.Device().synchronize()
    launch(graph, stream, 500)
    with stream, pytest.raises(gs.AccuracyError, match="first in refactorization 500 of 1,000"):
        newton.factor.check()
    launch(graph, stream, 1)
    with stream:
        assert newton.factor.check() < 100 * EPS["d"]


def test_two_factors_and_calls_that_wait_in_between(cupy):
    first, second = Newton(cupy, circuit()), Newton(cupy, circuit(), engine="sflu")
    stream, b = cupy.cuda.Stream(non_blocking=True), rhs(first.n)
    with stream:
        for newton in (first, second):
            newton.advance()
            newton.restart()
        stream.begin_capture()
        first.advance()
        second.advance()
        graph = stream.end_capture()
        for times in (1, 10, 100):
            launch(graph, stream, times)
            for newton in (first, second):
                held = sp.csc_array((newton.values.get(), newton.A.indices, newton.A.indptr))
                assert backward_error(held, newton.factor.solve(b), b) < 100 * EPS["d"]
                newton.factor.refactor(newton.A.data)
                assert backward_error(newton.A, newton.factor.solve(b), b) < 100 * EPS["d"]
    assert first.x.get().tobytes() == Newton(cupy, first.A).waited_for(111).tobytes()


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
            launch(graph, stream, 2)
            assert (x == whole.refactor_solve(values, b)).all()
        assert factor.check() < 100 * EPS["d"]


def test_calls_that_wait_are_refused_and_the_capture_goes_on(cupy):
    newton, stream = Newton(cupy, circuit()), cupy.cuda.Stream(non_blocking=True)
    newton.capture(stream)
    with stream:
        stream.begin_capture()
        for call in (lambda: newton.factor.solve(newton.residual), newton.factor.check):
            with pytest.raises(RuntimeError, match="the current stream is captured"):
                call()
        newton.advance()
        graph = stream.end_capture()
    launch(graph, stream, 3)
    with stream:
        assert newton.factor.check() < 100 * EPS["d"]


def test_in_a_graph_of_pytorch(cupy):
    """PyTorch captures with the strictest mode, on a stream of its own."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch without CUDA")
    newton = Newton(cupy, circuit())
    cupy.cuda.Device().synchronize()
    side = torch.cuda.Stream()
    same = cupy.cuda.Stream.from_external(StreamOfOthers(side.cuda_stream))
    with same:
        newton.advance()
        newton.restart()
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side), same:
        newton.advance()
    for _ in range(STEPS):
        graph.replay()
    torch.cuda.synchronize()
    assert newton.factor.check() < 100 * EPS["d"]
    assert newton.x.get().tobytes() == Newton(cupy, newton.A).waited_for(STEPS).tobytes()
