// Fronts of phase 0 (at most 16 rows) by one warp: one panel, D in its diagonal block, X below it, for LU Y = D A12.
//   N: y_below -= X y,    x = D y - Y x_below        Cholesky and LDL^T: Y = X^H
//   T: y_below -= Y^T y,  x = D^T y - X^T x_below
// Lane (i, half) works on row i and every second column.
#pragma once
#include "fronts/solve.cuh"

template <bool TRANSPOSED, int NV>
DEVICE void forward_tiny(const Group<NV>& group, const SolveFront& f, Scalar* scratch) {
  const int lane = threadIdx.x & 31, half = lane >> 4, W = f.width, R = f.rows;
  const int row = min(max(lane & 15, W), R - 1);
  const Scalar* from = group.factor(f) + (TRANSPOSED ? R * W + (row - W) * W : row);
  const int step = TRANSPOSED ? 1 : R;
  Scalar m[8], y[NV];
  start_forward<32>(group, f, lane, scratch, y, [&] {
    for_all<8>([&](int q) {
      const int k = 2 * q + half;
      m[q] = Scalar(0);
      if (2 * q < W && W < R) {
        const Scalar value = load_constant(from + min(k, W - 1) * step);
        if (k < W) m[q] = value;
      }
    });
  });
  for_all<NV>([&](int j) {
    Scalar sum(0);
    for_all<8>([&](int q) {
      if (2 * q < W) sum = mul_add(m[q], shuffle(y[j], 2 * q + half), sum);
    });
    sum += shuffle_xor(sum, 16);
    if (lane >= W) y[j] -= sum;
  });
  group.give_row(f, lane, y);
  signal<true, 32>(group, f);
}

template <bool TRANSPOSED, int NV> DEVICE void backward_tiny(const Group<NV>& group, const SolveFront& f) {
  const int lane = threadIdx.x & 31, half = lane >> 4, W = f.width, R = f.rows, k = min(lane & 15, W - 1);
  const Scalar* lower = group.factor(f);
  const Scalar* upper = lower + R * W;
  const int at =
      lane < W || W == R ? f.first + min(lane, W - 1) : __ldg(group.args.below + f.below + min(lane, R - 1) - W);
  Scalar m[8], v[NV];
  for_all<8>([&](int q) {
    const int column = 2 * q + half, c = min(column, R - 1);
    m[q] = Scalar(0);
    if (2 * q < R) {
      const Scalar value = load_constant(ONE_TRIANGLE || TRANSPOSED ? lower + c + k * R
                                         : c < W                    ? lower + k + c * R
                                                                    : upper + k + (c - W) * W);
      if (column < R) m[q] = ONE_TRIANGLE ? mirrored(value) : value;
    }
  });
  wait_for<false, 32>(group, f);
  if (lane < W || W == R) load_values<NV>(group.work(at), v);
  else group.take_x(at, v);
  Scalar x[NV];
  for_all<NV>([&](int j) {
    if (lane >= W) v[j] = -v[j];
    Scalar sum(0);
    for_all<8>([&](int q) {
      if (2 * q < R) sum = mul_add(m[q], shuffle(v[j], 2 * q + half), sum);
    });
    x[j] = sum + shuffle_xor(sum, 16);
  });
  if (lane < W) group.give_x(at, x);
  signal<false, 32>(group, f);
  if (lane < W) group.store_x(f.first + lane, x);
}
