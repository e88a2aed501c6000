// Fronts of phases 1 and 2 with at most WARP_SOLVE_ROWS by one warp, where there are many of them: a block each would
// leave most of its threads idle. Same format and same sums as fronts/solve_block.cuh. Lane l has the rows l, l + 32
// and l + 64; vectors that all lanes read are in shared memory, with zeros after the last one up to a whole panel.
#pragma once
#include "fronts/solve_block.cuh"

// Shared memory of a warp: one entry a local row and, from WARP_SOLVE_ROWS on, those of a panel; first for the gather.
template <int NV> constexpr int WARP_SCALARS = 32 * LANE_ROWS* NV;

// y -= a(row, column .. column + 15) v, for the rows of this lane in [first, last); columns end at `columns`.
template <int NV> DEVICE void subtract_panel(Scalar (&y)[LANE_ROWS][NV], const Scalar* a, int ld, int column,
                                             int columns, const Scalar* v, int first, int last) {
  for_all<LANE_ROWS>([&](int q) {
    if (32 * q < last && 32 * q + 31 >= first) {
      const int row = 32 * q + (threadIdx.x & 31);
      Scalar m[PANEL], rest[NV];
      load_row(m, a + min(row, last - 1), ld, column, columns);
      take<NV>(rest, y[q]);
      multiply_row<NV, true>(rest, m, v);
      if (row >= first && row < last) take<NV>(y[q], rest);
      __syncwarp();  // keeps the loads of the next rows after this point: there are no registers for them
    }
  });
}
// Rows first .. last - 1, a panel, to v[0 ..]; zeros after them.
template <int NV> DEVICE void share_panel(Scalar* v, const Scalar (&y)[LANE_ROWS][NV], int first, int last) {
  __syncwarp();
  for_all<LANE_ROWS>([&](int q) {
    const int row = 32 * q + (threadIdx.x & 31);
    if (row >= first && row < first + PANEL) share<NV>(v + (row - first) * NV, y[q], row < last);
  });
  __syncwarp();
}
// x of the pivots: to the work vector, and after the release to the caller.
template <int NV>
DEVICE void finish_backward(const Group<NV>& group, const SolveFront& f, const Scalar (&x)[LANE_ROWS][NV]) {
  const int lane = threadIdx.x & 31;
  for_all<LANE_ROWS>([&](int q) {
    if (32 * q + lane < f.width) group.give_x(f.first + 32 * q + lane, x[q]);
  });
  signal<false, 32>(group, f);
  for_all<LANE_ROWS>([&](int q) {
    if (32 * q + lane < f.width) group.store_x(f.first + 32 * q + lane, x[q]);
  });
}

// y_below -= X y, panel by panel
template <int NV> DEVICE void forward_warp(const Group<NV>& group, const SolveFront& f, Scalar* v) {
  static_assert(Gather<32, NV, LANE_ROWS>::SCALARS <= WARP_SCALARS<NV>);
  const int lane = threadIdx.x & 31, W = f.width, R = f.rows;
  const Scalar* lower = group.factor(f);
  Scalar y[LANE_ROWS][NV];
  Gather<32, NV, LANE_ROWS> gather(group, f, lane);
  for_all<LANE_ROWS>([&](int q) {
    const int row = 32 * q + lane;
    clear<NV>(y[q]);
    if (row < W) group.load_b(f.first + row, y[q]);
  });
  wait_for<true, 32>(group, f);
  gather.add(v, y);
#pragma unroll 1
  for (int k0 = 0; k0 < W; k0 += PANEL) {
    const int end = min(k0 + PANEL, W);
    share_panel<NV>(v, y, k0, end);
    subtract_panel<NV>(y, lower, R, k0, end, v, end, R);
  }
  for_all<LANE_ROWS>([&](int q) { group.give_row(f, 32 * q + lane, y[q]); });
  signal<true, 32>(group, f);
}

// x of the rows below to v[0 ..], once the parent is solved; zeros after them up to a panel.
template <int NV> DEVICE void load_below(const Group<NV>& group, const SolveFront& f, Scalar* v) {
  const int lane = threadIdx.x & 31, H = f.rows - f.width;
  int at[LANE_ROWS];
  for_all<LANE_ROWS>([&](int q) { at[q] = H ? __ldg(group.args.below + f.below + min(32 * q + lane, H - 1)) : 0; });
  wait_for<false, 32>(group, f);
  for_all<LANE_ROWS>([&](int q) {
    const int row = 32 * q + lane;
    if (row < (H + PANEL - 1) / PANEL * PANEL) {
      Scalar x[NV];
      group.take_x(at[q], x);
      share<NV>(v + row * NV, x, row < H);
    }
  });
  __syncwarp();
}
template <int NV> DEVICE void load_pivots(const Group<NV>& group, const SolveFront& f, Scalar (&y)[LANE_ROWS][NV]) {
  const int lane = threadIdx.x & 31;
  for_all<LANE_ROWS>([&](int q) { load_values<NV>(group.work(f.first + min(32 * q + lane, f.width - 1)), y[q]); });
}

// y := D y for the rows k0 .. end - 1 of a panel; v: the panel
template <int NV>
DEVICE void multiply_inverse(Scalar (&y)[LANE_ROWS][NV], const Scalar* lower, int ld, int k0, int end, Scalar* v) {
  share_panel<NV>(v, y, k0, end);
  const int slot = k0 / 32, row = 32 * slot + (threadIdx.x & 31);
  const bool inside = row >= k0 && row < end;
  Scalar d[PANEL], x[NV];
  load_row(d, lower + min(row, end - 1), ld, k0, end);
  multiply_row<NV, false>(x, d, v);
  for_all<LANE_ROWS, NV>([&](int q, int j) { y[q][j] = q == slot && inside ? x[j] : y[q][j]; });
  __syncwarp();
}

// y -= upper x_below where few rows leave lanes idle: groups of 4, 8 or 16 lanes take columns in turn
template <int NV> DEVICE void subtract_narrow(Scalar (&y)[NV], const Scalar* upper, int W, int H, const Scalar* v) {
  const int lane = threadIdx.x & 31, lanes = W > 8 ? 16 : W > 4 ? 8 : 4, groups = 32 / lanes;
  const Scalar* from = upper + min(lane & (lanes - 1), W - 1);
  Scalar sum[NV];
  clear<NV>(sum);
#pragma unroll 1
  for (int column = lane / lanes; column < H; column += 8 * groups) {
    Scalar m[8];
    for_all<8>([&](int k) { m[k] = load_constant(from + min(column + k * groups, H - 1) * W); });
    for_all<8>([&](int k) {
      if (column + k * groups < H)
        for_all<NV>([&](int j) { sum[j] = mul_add(m[k], v[(column + k * groups) * NV + j], sum[j]); });
    });
  }
  __syncwarp();
  for (int mask = lanes; mask < 32; mask <<= 1) for_all<NV>([&](int j) { sum[j] += shuffle_xor(sum[j], mask); });
  subtract<NV>(y, sum);
}

// x = D (y - A12 x_rest), panel by panel from the last
template <int NV> DEVICE void backward_warp_rows(const Group<NV>& group, const SolveFront& f, Scalar* v) {
  const int W = f.width, R = f.rows, H = R - W;
  const Scalar* lower = group.factor(f);
  const Scalar* upper = lower + R * W;
  Scalar y[LANE_ROWS][NV], *panel = v + WARP_SOLVE_ROWS * NV;
  load_pivots(group, f, y);
  load_below(group, f, v);
  if (W <= 16) {
    if (H) subtract_narrow<NV>(y[0], upper, W, H, v);
  } else
#pragma unroll 1
    for (int column = 0; column < H; column += PANEL) subtract_panel<NV>(y, upper, W, column, H, v + column * NV, 0, W);
#pragma unroll 1
  for (int k0 = (W - 1) / PANEL * PANEL; k0 >= 0; k0 -= PANEL) {
    const int end = min(k0 + PANEL, W);
    multiply_inverse<NV>(y, lower, R, k0, end, panel);
    if (k0) {
      share_panel<NV>(panel, y, k0, end);
      subtract_panel<NV>(y, lower, R, k0, end, panel, 0, k0);
    }
  }
  finish_backward(group, f, y);
}

// The next columns and rows of a walk over X, from the last columns on: BATCH columns from k0 and 32 rows from `first`.
template <int BATCH> struct ColumnWalk {
  int k0, first;
  DEVICE ColumnWalk(int W, int R) : k0((W - 1) / BATCH * BATCH) {
    if (W == R) k0 = (W - 1) / PANEL * PANEL - BATCH;  // nothing is below the last panel
    first = below(W);
  }
  DEVICE int below(int W) const { return min(k0 / PANEL * PANEL + PANEL, W); }
  // Whether these are other columns.
  DEVICE bool advance(int W, int R) {
    first += 32;
    if (first < R) return false;
    k0 -= BATCH;
    first = below(W);
    return true;
  }
  DEVICE void load(Scalar (&m)[BATCH], const Scalar* lower, int W, int R) const {
    const Scalar* from = lower + min(first + (int)(threadIdx.x & 31), R - 1);
    const int last = min(k0 + BATCH, W) - 1;
    for_all<BATCH>([&](int k) { m[k] = load_constant(from + min(k0 + k, last) * R); });
  }
};

// Cholesky and LDL^T: x = D y - X^H x_rest, columns from the last; the next entries are loaded while the current ones
// are processed, the first before x_rest is there
template <int NV> DEVICE void backward_warp_columns(const Group<NV>& group, const SolveFront& f, Scalar* v) {
  constexpr int BATCH = NV == 1 ? 8 : 4;  // columns at a time: registers
  const int lane = threadIdx.x & 31, W = f.width, R = f.rows;
  const Scalar* lower = group.factor(f);
  Scalar y[LANE_ROWS][NV], m[BATCH], sum[BATCH][NV];
  load_pivots(group, f, y);
  for_all<LANE_ROWS>([&](int q) {  // y := D y, two panels at a time
    if (32 * q >= W) return;
    const int row = 32 * q + lane, k0 = min(row, W - 1) / PANEL * PANEL;
    Scalar d[PANEL];
    load_row(d, lower + min(row, W - 1), R, k0, W);
    share<NV>(v + row * NV, y[q], row < W);
    __syncwarp();
    multiply_row<NV, false>(y[q], d, v + k0 * NV);
    __syncwarp();
    if (row < W) share<NV>(v + row * NV, y[q]);
  });
  ColumnWalk<BATCH> walk(W, R);
  if (walk.k0 >= 0) walk.load(m, lower, W, R);
  load_below(group, f, v + W * NV);
  for_all<BATCH>([&](int k) { clear<NV>(sum[k]); });
#pragma unroll 1
  while (walk.k0 >= 0) {
    const int k0 = walk.k0, row = walk.first + lane;
    const bool done = walk.advance(W, R);
    Scalar ahead[BATCH];
    if (walk.k0 >= 0) walk.load(ahead, lower, W, R);
    for_all<NV>([&](int j) {
      const Scalar x = row < R ? v[row * NV + j] : Scalar(0);
      for_all<BATCH>([&](int k) { sum[k][j] = mul_add(mirrored(m[k]), x, sum[k][j]); });
    });
    for_all<BATCH>([&](int k) { m[k] = ahead[k]; });
    if (!done) continue;
    fold_columns<BATCH, NV>(sum);
    const int own = k0 + lane / (32 / BATCH);
    if (lane % (32 / BATCH) == 0 && own < W) subtract<NV>(v + own * NV, sum[0]);
    __syncwarp();
    for_all<BATCH>([&](int k) { clear<NV>(sum[k]); });
  }
  for_all<LANE_ROWS>([&](int q) {
    if (32 * q + lane < W) take<NV>(y[q], v + (32 * q + lane) * NV);
  });
  finish_backward(group, f, y);
}
