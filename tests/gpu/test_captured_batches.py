"""Newton's method for many systems in a graph of the caller's, on a device: kernels of CuPy's and a batch."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from support import batch_newton
from support.batch_newton import BatchNewton
from support.lockstep import LU, right_hand_sides, systems
from support.small_matrices import EPS, canonical

pytestmark = pytest.mark.gpu

STEPS = 1000

ASSEMBLE = """
extern "C" __global__ void assemble(int n, long long nnz, const long long* ptr, const int* ind, const int* place,
                                    const double* a, const long long* diagonal, const double* b, const double* x,
                                    const int* time, int when, int spoilt, double* values, double* residual) {
  const long long s = blockIdx.y;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const double own = x[s * n + i];
    double sum = sin(*time / 50.) * b[s * n + i] - own * own * own;
    for (long long p = ptr[i]; p < ptr[i + 1]; p++) {
      const long long at = s * nnz + place[p];
      sum -= a[at] * x[s * n + ind[p]];
      values[at] = *time == when && s == spoilt ? nan("") : a[at] + (place[p] == diagonal[i] ? 3 * own * own : 0);
    }
    residual[s * n + i] = sum;
  }
}
extern "C" __global__ void update(long long size, const double* step, double* x, int* time) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < size) x[i] += step[i];
  if (i == 0) ++*time;
}
"""


class Newton(BatchNewton):
    """System `spoilt` is so in step `when`."""

    def __init__(self, cupy, count=40, make=gs.splu_batch, when=-1, spoilt=7):
        A = canonical(gallery.poisson(30, 30) + 0.5 * sp.eye_array(900))
        super().__init__(cupy.asarray, A, count, make)
        rows = sp.csr_array(sp.csc_array((np.arange(A.nnz, dtype=np.int32), A.indices, A.indptr), shape=A.shape))
        arrays = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, self.given, self.diagonal
        self.arrays = tuple(map(cupy.asarray, (*arrays, self.b)))
        module = cupy.RawModule(code=ASSEMBLE)
        self.kernels = module.get_function("assemble"), module.get_function("update")
        self.time, self.spoilt = cupy.ones(1, "i4"), (np.int32(when), np.int32(spoilt))

    def assemble(self):
        sizes = np.int32(self.n), np.int64(self.A.nnz)
        args = (*sizes, *self.arrays, self.x, self.time, *self.spoilt, self.values, self.residual)
        self.kernels[0]((4, self.count), (256,), args)

    def update(self):
        size = self.count * self.n
        self.kernels[1]((-(-size // 256),), (256,), (np.int64(size), self.step, self.x, self.time))

    def capture(self, stream):
        """Replays of a step, after one that was not captured."""
        with stream:
            self.advance()
            self.x[...], self.time[...] = 0, 1
            self.batch.check()
        return captured(stream, self.advance)


def captured(stream, body):
    """Replays of what `body` asks of the device; the host waits for them."""
    from cupy import cuda

    with stream:
        stream.begin_capture()
        try:
            body()
        finally:
            graph = stream.end_capture()

    def launch(times=1):
        cuda.Device().synchronize()  # other streams have written to its arrays
        for _ in range(times):
            graph.launch(stream)
        stream.synchronize()

    return launch


@pytest.fixture
def stream(cupy):
    return cupy.cuda.Stream(non_blocking=True)


@pytest.mark.parametrize("make", [gs.splu_batch, gs.cholesky_batch])
def test_newton_with_no_host_in_it(cupy, stream, make):
    newton, expected = Newton(cupy, make=make), Newton(cupy, make=make).waited_for(STEPS)
    cupy.cuda.Device().synchronize()
    batch_newton.check_steps(newton, newton.capture(stream), expected, STEPS)


def test_a_system_that_was_spoilt_in_replay_500(cupy, stream):
    newton, expected = Newton(cupy, when=500), Newton(cupy).waited_for(STEPS)
    cupy.cuda.Device().synchronize()
    batch_newton.check_spoilt_systems(newton, newton.capture(stream), expected, 500, [7], STEPS)


def test_calls_that_wait_are_refused_and_the_capture_goes_on(cupy, stream):
    newton = Newton(cupy)
    cupy.cuda.Device().synchronize()
    with stream:
        newton.assemble()
        newton.solve()
    stream.synchronize()
    batch_newton.check_calls_that_wait(newton, lambda step: captured(stream, step))


@pytest.mark.parametrize("dtype", "fD")
def test_solves_and_refactorizations_of_their_own(cupy, stream, dtype):
    A = LU["cube"](dtype)
    _, given = systems(A, 40)
    values, b = cupy.asarray(given), cupy.asarray(right_hand_sides(A, 40, (2,)))
    batch, plain = (gs.splu_batch(A, values, engine="supernodal") for _ in range(2))
    cupy.cuda.Device().synchronize()
    with stream:
        batch.refactor(values, check="later")
        x = batch.solve(b, "T", check="later")
    refactor = captured(stream, lambda: batch.refactor(values, check="later"))
    solve = captured(stream, lambda: batch.solve(b, "T", check="later", out=x))
    values *= 2
    cupy.cuda.Device().synchronize()
    refactor()
    solve()
    plain.refactor(values)
    assert x.get().tobytes() == plain.solve(b, "T").get().tobytes()
    assert (batch.check() < 100 * EPS[dtype]).all() and not batch.status.any()
