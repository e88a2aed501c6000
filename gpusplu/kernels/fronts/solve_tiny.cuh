// Fronts of phase 0 (at most 16 rows) by one warp: one panel, D in its diagonal block, X below it, for LU Y = D A12.
//   N: y_below -= X y,    x = D y - Y x_below        Cholesky and LDL^T: Y = X^H
//   T: y_below -= Y^T y,  x = D^T y - X^T x_below
// Lane (i, half) works on row i and every second column.
#pragma once
#include "fronts/solve.cuh"

template <int NV, bool TRANSPOSED>
DEVICE void forward_tiny(const SolveArgs& args, const SolveTask& f, int group, Scalar* scratch) {
  const int lane = threadIdx.x & 31, half = lane >> 4, W = f.width, R = f.rows;
  const int row = min(max(lane & 15, W), R - 1);
  const Scalar* from = args.factor + f.factor + (TRANSPOSED ? R * W + (row - W) * W : row);
  const int step = TRANSPOSED ? 1 : R;
  Scalar m[8], y[NV];
  Gather<32, NV> gather;
  gather.start(args, f.gather_begin, f.gather_count, first_row(f) + lane, R - lane);
  for_all<8>([&](int q) {
    const int k = 2 * q + half;
    m[q] = Scalar(0);
    if (2 * q < W && W < R) {
      const Scalar value = load_constant(from + min(k, W - 1) * step);
      if (k < W) m[q] = value;
    }
  });
  load_start<NV>(args, f, group, lane, y);
  wait_for_children<32, NV>(args, f, group);
  gather.add(args, f.gather_begin, f.gather_count, f.tag, group, scratch, y);
  for_all<NV>([&](int j) {
    Scalar sum(0);
    for_all<8>([&](int q) {
      if (2 * q < W) sum = mul_add(m[q], shuffle(y[j], 2 * q + half), sum);
    });
    sum += shuffle_xor(sum, 16);
    if (lane >= W) y[j] -= sum;
  });
  give_row<NV>(args, f, group, lane, y);
  arrive<32, NV>(args, f, group);
}

template <int NV, bool TRANSPOSED> DEVICE void backward_tiny(const SolveArgs& args, const SolveTask& f, int group) {
  const int lane = threadIdx.x & 31, half = lane >> 4, W = f.width, R = f.rows, k = min(lane & 15, W - 1);
  const Scalar* lower = args.factor + f.factor;
  const Scalar* upper = lower + R * W;
  Scalar* work = work_of<NV>(args, group);
  const int at = lane < W || W == R ? f.first + min(lane, W - 1) : __ldg(args.below + f.below + min(lane, R - 1) - W);
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
  wait_for_parent<32, NV>(args, f, group);
  if (lane < W || W == R) load_values<NV>(work + (long long)at * NV, v);
  else take_x<NV>(args, f.tag, group, at, v);
  Scalar x[NV];
  for_all<NV>([&](int j) {
    if (lane >= W) v[j] = -v[j];
    Scalar sum(0);
    for_all<8>([&](int q) {
      if (2 * q < R) sum = mul_add(m[q], shuffle(v[j], 2 * q + half), sum);
    });
    x[j] = sum + shuffle_xor(sum, 16);
  });
  if (lane < W) give_x<NV>(args, f.tag, group, at, x);
  release<32, NV>(args, f, group);
  if (lane < W) store_x<NV>(args, group, f.first + lane, x);
}
