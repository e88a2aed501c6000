// The blocked elimination of a front in shared memory (R x R, leading dimension ld, its first W columns are pivots).
//
// Panel of w <= 16 columns from k0: D = A11^-1, X = A21 D, A22 -= X A12. A12 stays raw; X is kept negated in shared
// memory, so that the update is a sum. Cholesky and LDL^T: only the lower triangle is assembled; where X is formed, raw
// A21^H is written into the upper triangle and replaces A12. Finished panels go to global memory while later panels are
// eliminated; the last update goes directly to the contribution block.
#pragma once
#include "fronts/front.cuh"
#include "fronts/gauss_jordan.cuh"

// ---- Products of small tiles, each by one warp, operands in shared memory: with tensor cores in double precision,
// else by multiply-adds.
//
// Lane 4 g + t holds c[m][n][e] = entry (16 m + g + 8 (e / 2), 8 n + t + 4 (e % 2)) of a tile of 16 M x 8 N. The
// columns of an 8-wide product are permuted (n -> n / 2 + 4 (n % 2)) against the instruction's order: then accesses to
// C with a leading dimension of 4 mod 8 meet no bank conflicts, and a 16 x 16 tile has the layout of gauss_jordan.

#if defined(SCALAR_d) && (FP64_TENSOR_CORES || defined(GPUSPLU_EMULATED))
constexpr bool use_mma = true;
#else
constexpr bool use_mma = false;
#endif

// Columns of A at a time in products without tensor cores: registers.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int FMA_STEPS = 1;
#else
constexpr int FMA_STEPS = sizeof(Scalar) == 16 ? 1 : 2;
#endif

// Row and column of c[.][.][e] in its 16 x 8 part.
DEVICE int tile_row(int e) { return (int)((threadIdx.x & 31) >> 2) + 8 * (e >> 1); }
DEVICE int tile_column(int e) { return (int)(threadIdx.x & 3) + 4 * (e & 1); }

// C += A B: rows r0 .. of A (R rows; A(i, k) = a[i + k lda]), columns c0 .. of B (C columns; B(k, j) = b[k + j ldb]),
// k < w <= 16. Entries beyond R and C get results of the last row or column. WHOLE: w = 16 and nothing lies beyond;
// then most addresses differ by constants.
template <int M, int N, bool WHOLE> DEVICE void add_product(Scalar (&c)[M][N][4], const Scalar* a, int lda, int r0,
                                                            int R, const Scalar* b, int ldb, int c0, int C, int w) {
  const int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
  const auto row = [&](int m, int half) {
    return WHOLE ? r0 + g + (16 * m + 8 * half) : min(r0 + g + (16 * m + 8 * half), R - 1);
  };
  const auto column = [&](int n, int first) { return WHOLE ? c0 + first + 8 * n : min(c0 + first + 8 * n, C - 1); };
  if constexpr (use_mma) {
    constexpr int STEPS = M > 1 ? 2 : 4;  // of four columns at a time: registers
    const int mine = (g >> 1) + 4 * (g & 1);
#pragma unroll(WHOLE ? 4 : 1)
    for (int k0 = 0; k0 < (WHOLE ? PANEL : w); k0 += 4 * STEPS) {
      Scalar x[STEPS][M][2], y[STEPS][N];
      for_all<STEPS>([&](int q) {
        const int k = k0 + 4 * q + t;
        const bool used = WHOLE || k < w;
        for_all<M>([&](int m) {
          x[q][m][0] = used ? a[row(m, 0) + k * lda] : Scalar(0);
          x[q][m][1] = used ? a[row(m, 1) + k * lda] : Scalar(0);
        });
        for_all<N>([&](int n) { y[q][n] = used ? b[column(n, mine) * ldb + k] : Scalar(0); });
      });
      for_all<STEPS, N, M>([&](int q, int n, int m) { mma(c[m][n], x[q][m][0], x[q][m][1], y[q][n]); });
    }
  } else {
#pragma unroll(FMA_STEPS)
    for (int k = 0; k < (WHOLE ? PANEL : w); k++) {
      Scalar x[M][2], y[N][2];
      for_all<M>([&](int m) { x[m][0] = a[row(m, 0) + k * lda], x[m][1] = a[row(m, 1) + k * lda]; });
      for_all<N>([&](int n) { y[n][0] = b[column(n, t) * ldb + k], y[n][1] = b[column(n, t + 4) * ldb + k]; });
      for_all<M, N, 4>([&](int m, int n, int e) { c[m][n][e] = mul_add(x[m][e >> 1], y[n][e & 1], c[m][n][e]); });
    }
  }
}

// ---- the elimination
constexpr int TILE = sizeof(Scalar) == 16 ? 1 : 2;  // registers

struct Elimination {
  Scalar* front;    // shared
  Scalar* inverse;  // shared: D of the current panel, PANEL_LD x 16, anything beyond w
  int ld, R, W;
  Scalar* lower;  // global
  Scalar* upper;
  Scalar* block;
};

// One warp: the diagonal block from n0 (w columns) after the update by the panel (k0, n0 - k0) -> its inverse.
DEVICE void invert_next(const Elimination& e, int k0, int n0, int w, const PivotRules& rules) {
  Scalar c[1][2][4], a[2][4];
  for_all<2, 4>([&](int n, int q) {
    const int i = min(n0 + tile_row(q), e.R - 1), j = min(n0 + 8 * n + tile_column(q), e.R - 1);
    if constexpr (ONE_TRIANGLE) {
      const Scalar x = e.front[max(i, j) + min(i, j) * e.ld];
      c[0][n][q] = i < j ? mirrored(x) : x;
    } else {
      c[0][n][q] = e.front[i + j * e.ld];
    }
  });
  if (n0 > k0) {
    add_product<1, 2, false>(c, e.front + k0 * e.ld, e.ld, n0, e.R, e.front + k0, e.ld, n0, e.R, PANEL);
    __syncwarp();     // other lanes may have read the last row in place of rows beyond R
    if (w < PANEL) {  // the rest of the tile belongs to rows and columns after the pivots
      for_all<2, 4>([&](int n, int q) {
        const int i = tile_row(q), j = 8 * n + tile_column(q);
        if ((i >= w || j >= w) && max(n0 + i, n0 + j) < e.R) e.front[n0 + i + (n0 + j) * e.ld] = c[0][n][q];
      });
    }
  }
  for_all<2, 4>([&](int i, int q) { a[i][q] = c[0][q >> 1][2 * i + (q & 1)]; });
  const Places places = gauss_jordan(a, w, rules);
  for_all<2, 4>([&](int i, int q) { e.inverse[places.row[i] + places.column(q) * PANEL_LD] = a[i][q]; });
}

// One warp: rows r0 .. r0 + 15 of the panel (k0, w): A21 -> -A21 D.
DEVICE void apply_inverse(const Elimination& e, int k0, int w, int r0, unsigned& multiplier_bits) {
  Scalar c[1][2][4] = {};
  Scalar* panel = e.front + k0 * e.ld;
  add_product<1, 2, false>(c, panel, e.ld, r0, e.R, e.inverse, PANEL_LD, 0, PANEL, w);
  __syncwarp();
  for_all<2, 4>([&](int n, int q) {
    const int i = r0 + tile_row(q), j = 8 * n + tile_column(q);
    if (i < e.R && j < w) {
      if constexpr (ONE_TRIANGLE) e.front[k0 + j + i * e.ld] = mirrored(panel[i + j * e.ld]);
      panel[i + j * e.ld] = -c[0][n][q];
      multiplier_bits = max(multiplier_bits, magnitude_bits(c[0][n][q]));
    }
  });
}

// One warp: the update of 16 M x 8 N entries from (r0, c0) on, rows below first_row left out, by the panel (k0, w);
// results to `to`, ld. WHOLE: all entries are to be updated, and w = 16.
template <bool WHOLE, int M, int N>
DEVICE void update_tile(const Elimination& e, int k0, int w, int r0, int c0, int first_row, Scalar* to, int ld) {
  Scalar c[M][N][4];
  const Scalar* from = e.front + r0 + tile_row(0) + (c0 + tile_column(0)) * e.ld;
  to += tile_row(0) + tile_column(0) * ld;
  const auto used = [&](int m, int n, int q) {
    const int i = r0 + tile_row(0) + (16 * m + 8 * (q >> 1)), j = c0 + tile_column(0) + (8 * n + 4 * (q & 1));
    return WHOLE || (i < e.R && j < e.R && i >= first_row && (!ONE_TRIANGLE || i >= j));
  };
  for_all<M, N, 4>([&](int m, int n, int q) {
    c[m][n][q] = used(m, n, q) ? from[16 * m + 8 * (q >> 1) + (8 * n + 4 * (q & 1)) * e.ld] : Scalar(0);
  });
  add_product<M, N, WHOLE>(c, e.front + k0 * e.ld, e.ld, r0, e.R, e.front + k0, e.ld, c0, e.R, w);
  for_all<M, N, 4>([&](int m, int n, int q) {
    if (used(m, n, q)) to[16 * m + 8 * (q >> 1) + (8 * n + 4 * (q & 1)) * ld] = c[m][n][q];
  });
}

// Warp `worker` of `workers`: the update of A22 by the panel (k0, w) in tiles of 16 M x 8 N. With `more` panels to
// come the first 16 x 16 entries are left to invert_next; else A22 is the contribution block and goes there.
template <int M, int N>
DEVICE void update_tiles(const Elimination& e, int k0, int w, bool more, int worker, int workers) {
  const int n0 = k0 + w, tile_rows = (e.R - n0 + 16 * M - 1) / (16 * M),
            tiles = tile_rows * ((e.R - n0 + 8 * N - 1) / (8 * N)), H = e.R - e.W;
  const int reciprocal = (0xffff + tile_rows) / tile_rows;  // tile / tile_rows = tile * reciprocal >> 16: few tiles
  for (int tile = worker; tile < tiles; tile += workers) {
    const int across = tile * reciprocal >> 16;
    const int r0 = n0 + 16 * M * (tile - across * tile_rows), c0 = n0 + 8 * N * across;
    if (ONE_TRIANGLE && r0 + 16 * M <= c0) continue;
    Scalar* to = more ? e.front + r0 + c0 * e.ld : e.block + (r0 - e.W) + (c0 - e.W) * H;
    const int ld = more ? e.ld : H;
    const bool next_pivots = more && r0 < n0 + PANEL && c0 < n0 + PANEL;
    if (next_pivots && M == 1) continue;
    if (w == PANEL && r0 + 16 * M <= e.R && c0 + 8 * N <= e.R && !next_pivots &&
        (!ONE_TRIANGLE || r0 >= c0 + 8 * N - 1))
      update_tile<true, M, N>(e, k0, w, r0, c0, 0, to, ld);
    else update_tile<false, M, N>(e, k0, w, r0, c0, next_pivots ? n0 + PANEL : 0, to, ld);
  }
}

// Small tiles where the warps are more than the large ones: each has fewer instructions to go through then.
DEVICE void update_rest(const Elimination& e, int k0, int w, bool more, int worker, int workers) {
  const int rest = e.R - k0 - w;
  if (rest == 0) return;
  if (rest * rest <= 16 * TILE * 16 / 2 * workers) update_tiles<1, 1>(e, k0, w, more, worker, workers);
  else update_tiles<TILE, 2>(e, k0, w, more, worker, workers);
}

// Warp `worker` of `workers`: X of the panel (k0, w) and, for LU, its rows of A12 to global memory.
DEVICE void store_panel(const Elimination& e, int k0, int w, int worker, int workers) {
  const int lane = threadIdx.x & 31, n0 = k0 + w;
  for (int j = k0 + worker; j < n0; j += workers)
#pragma unroll 4
    for (int i = n0 + lane; i < e.R; i += 32) e.lower[i + j * e.R] = -e.front[i + j * e.ld];
  if constexpr (!ONE_TRIANGLE) {
    const int k = k0 + (lane & 15);
    if (k >= n0) return;
#pragma unroll 4
    for (int j = n0 + 2 * worker + (lane >> 4); j < e.R; j += 2 * workers) {
      Scalar* to = j < e.W ? e.lower + j * e.R : e.upper + (j - e.W) * e.W;
      to[k] = e.front[k + j * e.ld];
    }
  }
}

// One warp: D of the panel (k0, w) to global memory.
DEVICE void store_inverse(const Elimination& e, int k0, int w) {
  const int lane = threadIdx.x & 31, i = lane & 15;
  if (i >= w) return;
  for (int j = lane >> 4; j < w; j += 2)
    if constexpr (LDLT) store_mirrored(e.lower + k0 + k0 * e.R, e.R, i, j, e.inverse[i + j * PANEL_LD]);
    else e.lower[k0 + i + (k0 + j) * e.R] = e.inverse[i + j * PANEL_LD];
}

// The whole block: all panels of the front.
template <int THREADS> DEVICE void eliminate(const Elimination& e, const PivotRules& rules, unsigned& multiplier_bits) {
  constexpr int WARPS = THREADS / 32;
  const int warp = shuffle((int)(threadIdx.x >> 5), 0);  // so the compiler knows that it is the same in all lanes
  int k0 = 0, w = 0;                                     // the panel that updates next
  for (;;) {
    const int n0 = k0 + w, next = min(PANEL, e.W - n0);
    if (next > 0 && warp == 0) {
      invert_next(e, k0, n0, next, rules);
    } else if (w > 0) {
      // While warp 0 inverts, the other warps of its scheduler only store, unless the update is the longer task.
      const bool split_roles = WARPS >= 8 && next > 0 && e.R - n0 <= 112, storing = !split_roles || warp % 4 == 0;
      const int first = next > 0 ? 1 : 0;
      if (!split_roles || warp % 4 > 0)
        update_rest(e, k0, w, next > 0, split_roles ? warp - warp / 4 - 1 : warp - first,
                    split_roles ? WARPS - WARPS / 4 : WARPS - first);
      if (storing)
        store_panel(e, k0, w, split_roles ? warp / 4 - 1 : warp - first, split_roles ? WARPS / 4 - 1 : WARPS - first);
    }
    if (next == 0) return;
    __syncthreads();
    for (int t = warp; n0 + next + 16 * t < e.R; t += WARPS)
      apply_inverse(e, n0, next, n0 + next + 16 * t, multiplier_bits);
    if (warp == WARPS - 1) store_inverse(e, n0, next);
    __syncthreads();
    k0 = n0, w = next;
  }
}
