// Fronts of phases 1 and 2 (at most BYTE_ROWS) by a block, panel by panel. The W x W part of `lower`
// holds D in the diagonal blocks, X = A21 D below them, for LU raw A12 above them; `upper` the rest of A12.
//
// Two shapes of work. By rows: thread r keeps y_r in registers and subtracts panel after panel (N, and forward for
// one triangle): one barrier a panel, 16 multiply-adds. By columns: warp w sums columns 2w and 2w + 1 of a panel, lanes
// along the rows (T, and backward for one triangle). The next panel's entries are loaded while the current one is
// processed.
#pragma once
#include "fronts/solve.cuh"

// One right-hand side: the next panel is loaded during the current one; several: they take these registers.
template <int NV> constexpr bool AHEAD = NV == 1;
constexpr int DEEP_ROWS = 8;  // rows of a lane in work by columns
static_assert(DEEP_ROWS * 32 >= BYTE_ROWS && SOLVE_THREADS >= BYTE_ROWS);

template <int NV> struct BlockScratch {
  static constexpr int PARTIAL = Gather<SOLVE_THREADS, NV>::SCALARS, VECTOR = (SOLVE_THREADS + PANEL) * NV;
  static_assert(PARTIAL + 2 * VECTOR == solve_scalars(NV));
  Scalar *partial, *v = partial + PARTIAL, *w = v + VECTOR;  // v, w: one entry per local row, and a panel after them
};

// Row `row` (pointer) of columns k0 .. k0 + 15, those after W - 1 replaced by it.
DEVICE void load_row(Scalar (&m)[PANEL], const Scalar* row, int ld, int k0, int W) {
  for_all<PANEL>([&](int k) { m[k] = load_constant(row + min(k0 + k, W - 1) * ld); });
}
// y -= m v, or y = m v
template <int NV, bool SUBTRACT> DEVICE void multiply_row(Scalar (&y)[NV], const Scalar (&m)[PANEL], const Scalar* v) {
  constexpr int CHAINS = NV == 1 ? 2 : 1;  // the latency of one would show
  for_all<NV>([&](int j) {
    Scalar sum[CHAINS];
    for_all<CHAINS>([&](int c) { sum[c] = Scalar(0); });
    for_all<PANEL>([&](int k) { sum[k % CHAINS] = mul_add(m[k], v[k * NV + j], sum[k % CHAINS]); });
    const Scalar all = CHAINS == 2 ? sum[0] + sum[CHAINS - 1] : sum[0];
    y[j] = SUBTRACT ? y[j] - all : all;
  });
}

// Two columns of this warp, rows `first` .. `last` - 1; after them the last one again.
struct ColumnPair {
  Scalar m[2][DEEP_ROWS];
  DEVICE void load(const Scalar* a, int ld, int column, int columns, int first, int last) {
    const int lane = threadIdx.x & 31;
    for_all<DEEP_ROWS>([&](int q) {
      if (first + 32 * q < last) {
        const int row = min(first + 32 * q + lane, last - 1);
        m[0][q] = load_constant(a + row + min(column, columns - 1) * ld);
        m[1][q] = load_constant(a + row + min(column + 1, columns - 1) * ld);
      }
    });
  }
  // Sums over the rows of m^H v (LU: m^T v): lanes below 16 get the first column's, the others the second's.
  template <int NV> DEVICE void sums(Scalar (&s)[NV], const Scalar* v, int first, int last) const {
    const int lane = threadIdx.x & 31;
    for_all<NV>([&](int j) {
      Scalar a(0), b(0);
      for_all<DEEP_ROWS>([&](int q) {
        if (first + 32 * q < last) {
          const int row = first + 32 * q + lane;
          const Scalar x = row < last ? v[row * NV + j] : Scalar(0);
          a = mul_add(ONE_TRIANGLE ? mirrored(m[0][q]) : m[0][q], x, a);
          b = mul_add(ONE_TRIANGLE ? mirrored(m[1][q]) : m[1][q], x, b);
        }
      });
      const Scalar other = shuffle_xor(lane < 16 ? b : a, 16);
      s[j] = warp_sum<16>((lane < 16 ? a : b) + other);
    });
  }
};

template <int NV> DEVICE void take_x_to(const Group<NV>& group, int at, Scalar* to) {
  Scalar x[NV];
  group.take_x(at, x);
  share<NV>(to, x);
}

// y_below -= X y, panel by panel
template <int NV> DEVICE void forward_rows(const Group<NV>& group, const SolveFront& f, Scalar* memory) {
  const BlockScratch<NV> scratch{memory};
  const int row = threadIdx.x, W = f.width, R = f.rows;
  const Scalar* lower = group.factor(f) + min(row, R - 1);
  Scalar y[NV], now[PANEL], next[PANEL];
  start_forward<SOLVE_THREADS>(group, f, row, scratch.partial, y, [&] { load_row(now, lower, R, 0, W); });
  const auto panel = [&](int k0, Scalar(&m)[PANEL], Scalar(&m_next)[PANEL]) {
    if (!AHEAD<NV> && k0) load_row(m, lower, R, k0, W);
    if (AHEAD<NV> && k0 + PANEL < W) load_row(m_next, lower, R, k0 + PANEL, W);
    if (row >= k0 && row < k0 + PANEL) share<NV>(scratch.v + row * NV, y, row < W);
    __syncthreads();
    Scalar rest[NV];
    take<NV>(rest, y);
    multiply_row<NV, true>(rest, m, scratch.v + k0 * NV);
    if (row >= min(k0 + PANEL, W)) take<NV>(y, rest);
  };
  for (int k0 = 0; k0 < W; k0 += 2 * PANEL) {
    panel(k0, now, next);
    if (k0 + PANEL < W) panel(k0 + PANEL, AHEAD<NV> ? next : now, now);
  }
  group.give_row(f, row, y);
  signal<true, SOLVE_THREADS>(group, f);
}

// x = D (y - A12 x_rest), panel by panel from the last
template <int NV> DEVICE void backward_rows(const Group<NV>& group, const SolveFront& f, Scalar* memory) {
  const BlockScratch<NV> scratch{memory};
  const int row = threadIdx.x, W = f.width, R = f.rows, H = R - W;
  const Scalar* lower = group.factor(f) + min(row, W - 1);
  const int parts = min(16, SOLVE_THREADS / W), part = row / W;  // of the rows below: columns of `upper`
  const Scalar* upper = group.factor(f) + R * W + (row - part * W);
  Scalar y[NV], now[PANEL], next[PANEL];
  const int below = H ? __ldg(group.args.below + f.below + min(row, H - 1)) : 0;
  load_values<NV>(group.work(f.first + min(row, W - 1)), y);
  const int last = (W - 1) / PANEL * PANEL;
  if (AHEAD<NV>) load_row(now, lower, R, last, W);
  if (H) load_row(next, upper + min(part, H - 1) * W, parts * W, 0, max((H - 1 - part) / parts, 0) + 1);
  wait_for<false, SOLVE_THREADS>(group, f);
  if (H) {
    if (row < H) take_x_to(group, below, scratch.w + row * NV);
    __syncthreads();
    if (part < parts) {
      Scalar sum[NV];
      clear<NV>(sum);
      for (int c0 = part; c0 < H; c0 += PANEL * parts) {
        for_all<PANEL>([&](int k) {
          const int c = c0 + k * parts;
          if (c < H) for_all<NV>([&](int j) { sum[j] = mul_add(next[k], scratch.w[c * NV + j], sum[j]); });
        });
        if (c0 + PANEL * parts < H) load_row(next, upper + c0 * W, parts * W, PANEL, (H - 1 - c0) / parts + 1);
      }
      share<NV>(scratch.partial + row * NV, sum);
    }
    __syncthreads();
    if (row < W)
      for (int p = 0; p < parts; p++) subtract<NV>(y, scratch.partial + (p * W + row) * NV);
  }
  const auto panel = [&](int k0, Scalar(&m)[PANEL], Scalar(&m_next)[PANEL]) {
    if (!AHEAD<NV>) load_row(m, lower, R, k0, W);
    if (AHEAD<NV> && k0) load_row(m_next, lower, R, k0 - PANEL, W);
    const bool inside = row >= k0 && row < k0 + PANEL;
    if (inside) share<NV>(scratch.v + row * NV, y, row < W);
    __syncwarp();
    if (inside) {
      multiply_row<NV, false>(y, m, scratch.v + k0 * NV);
      share<NV>(scratch.w + row * NV, y, row < W);
    }
    __syncthreads();
    if (row < k0) multiply_row<NV, true>(y, m, scratch.w + k0 * NV);
  };
  for (int k0 = last; k0 >= 0; k0 -= 2 * PANEL) {
    panel(k0, now, next);
    if (k0) panel(k0 - PANEL, AHEAD<NV> ? next : now, now);
  }
  if (row < W) group.give_x(f.first + row, y);
  signal<false, SOLVE_THREADS>(group, f);
  if (row < W) group.store_x(f.first + row, y);
}

// z = D^T (y - A12^T z_before), panel by panel; y_below -= A12^T z
template <int NV> DEVICE void forward_columns(const Group<NV>& group, const SolveFront& f, Scalar* memory) {
  const BlockScratch<NV> scratch{memory};
  const int row = threadIdx.x, lane = row & 31, pair = 2 * (row >> 5), side = lane >> 4, W = f.width, R = f.rows,
            H = R - W;
  const Scalar* lower = group.factor(f);
  const Scalar* upper = lower + R * W;
  Scalar y[NV];
  // entry of D that this lane multiplies in the panel at k0: row lane & 15, column pair + side
  const auto load_inverse = [&](int k0) {
    return load_constant(lower + min(k0 + (lane & 15), W - 1) + min(k0 + pair + side, W - 1) * R);
  };
  ColumnPair m;
  Scalar inverse;
  start_forward<SOLVE_THREADS>(group, f, row, scratch.partial, y, [&] { inverse = load_inverse(0); });
  for_all<NV>([&](int j) {
    scratch.v[row * NV + j] = row < R ? y[j] : Scalar(0);
    if (row < PANEL) scratch.v[(SOLVE_THREADS + row) * NV + j] = Scalar(0);
  });
  __syncthreads();
  for (int k0 = 0; k0 < W; k0 += PANEL) {
    const int column = k0 + pair + side;
    if (k0) {
      m.load(lower, R, k0 + pair, W, 0, k0);
      inverse = load_inverse(k0);
      Scalar s[NV];
      m.template sums<NV>(s, scratch.w, 0, k0);
      if ((lane & 15) == 0 && column < W) subtract<NV>(scratch.v + column * NV, s);
      __syncthreads();
    }
    const int k = k0 + (lane & 15);
    for_all<NV>([&](int j) {
      const Scalar z = warp_sum<16>(inverse * (k < W ? scratch.v[k * NV + j] : Scalar(0)));
      if ((lane & 15) == 0) scratch.w[column * NV + j] = column < W ? z : Scalar(0);
    });
    __syncthreads();
  }
  for (int c0 = 0; c0 < H; c0 += PANEL) {
    Scalar s[NV];
    m.load(upper, W, c0 + pair, H, 0, W);
    m.template sums<NV>(s, scratch.w, 0, W);
    if ((lane & 15) == 0 && c0 + pair + side < H) subtract<NV>(scratch.v + (W + c0 + pair + side) * NV, s);
  }
  __syncthreads();
  for_all<NV>([&](int j) { y[j] = row < W ? scratch.w[row * NV + j] : scratch.v[row * NV + j]; });
  group.give_row(f, row, y);
  signal<true, SOLVE_THREADS>(group, f);
}

// x = z - X^H x_rest (LU: X^T), panel by panel from the last; Cholesky and LDL^T: z = D y first
template <int NV> DEVICE void backward_columns(const Group<NV>& group, const SolveFront& f, Scalar* memory) {
  const BlockScratch<NV> scratch{memory};
  const int row = threadIdx.x, lane = row & 31, pair = 2 * (row >> 5), side = lane >> 4, W = f.width, R = f.rows,
            H = R - W;
  const Scalar* lower = group.factor(f);
  Scalar y[NV];
  const int below = H ? __ldg(group.args.below + f.below + min(row, H - 1)) : 0;
  load_values<NV>(group.work(f.first + min(row, W - 1)), y);
  const int last = (W - 1) / PANEL * PANEL;
  if (ONE_TRIANGLE) {
    Scalar d[PANEL];
    const int k0 = row / PANEL * PANEL;
    load_row(d, lower + min(row, W - 1), R, min(k0, last), W);
    share<NV>(scratch.v + row * NV, y, row < W);
    __syncwarp();
    multiply_row<NV, false>(y, d, scratch.v + k0 * NV);
    __syncwarp();
  }
  if (row < W) share<NV>(scratch.v + row * NV, y);
  ColumnPair now, next;
  if (AHEAD<NV>) now.load(lower, R, last + pair, W, W, R);
  wait_for<false, SOLVE_THREADS>(group, f);
  if (row < H) take_x_to(group, below, scratch.w + (W + row) * NV);
  __syncthreads();
  const auto panel = [&](int k0, ColumnPair& m, ColumnPair& m_next) {
    const int column = k0 + pair + side;
    if (!AHEAD<NV>) m.load(lower, R, k0 + pair, W, min(k0 + PANEL, W), R);
    if (AHEAD<NV> && k0) m_next.load(lower, R, k0 - PANEL + pair, W, k0, R);
    Scalar s[NV];
    m.template sums<NV>(s, scratch.w, min(k0 + PANEL, W), R);
    if ((lane & 15) == 0 && column < W)
      for_all<NV>([&](int j) { scratch.w[column * NV + j] = scratch.v[column * NV + j] - s[j]; });
    __syncthreads();
  };
  for (int k0 = last; k0 >= 0; k0 -= 2 * PANEL) {
    panel(k0, now, next);
    if (k0) panel(k0 - PANEL, AHEAD<NV> ? next : now, now);
  }
  if (row < W) {
    take<NV>(y, scratch.w + row * NV);
    group.give_x(f.first + row, y);
  }
  signal<false, SOLVE_THREADS>(group, f);
  if (row < W) group.store_x(f.first + row, y);
}
