// Cholesky factor of a diagonal tile of real numbers on tensor cores, with the inverse of the triangle.
//
// Panels of 8 columns. Every thread factors the 8 x 8 diagonal block by itself in registers, so that the chain of
// pivots needs no communication: a reciprocal estimate and three dependent multiply-adds a pivot (next pivot = d11 - q
// - q (e + e^2), q = a10 a01 y, e = 1 - d00 y, y ~ 1 / d00). Each thread then solves one row. The rest of the tile
// stays in registers as accumulators, a strip of 16 rows a warp, and moves down by one 8-column part a panel. Rows of
// the identity are transformed with them and end as rows of inv(L)^T, kept in the triangle that the factor leaves
// empty. Two barriers a panel; results go straight to global memory. 181 cycles a pivot on an H200 (generic
// fronts/tile_cholesky.cuh: not measured).
#pragma once
#include "fronts/tile_update.cuh"

#if TENSOR_CORES

struct CholeskyTensorScratch {
  Scalar panel[8 * STRIDE], solved[8 * STRIDE];  // the current panel before and after the solve, [column][row]
};

// d = c + A B, A 16 x 8 in a, B 8 x 8. Lane (g, t) holds rows g, g + 8 and columns t, t + 4 of d and c.
DEVICE void multiply8(Scalar (&d)[4], const Scalar (&a)[4], Scalar b0, Scalar b1, const Scalar (&c)[4]) {
  for_all<4>([&](int q) { d[q] = c[q]; });
  mma(d, a, {b0, b1});
}

// Cholesky factor L of the 8 x 8 block b ([column][row], lower triangle) while x becomes x inv(L)^T. Returns which
// pivots are not positive, a bit each.
DEVICE unsigned solve_row8(Scalar (&b)[8][8], Scalar (&x)[8]) {
  unsigned failed = 0;
  Scalar d = b[0][0];
  for_all<8>([&](int k) {
    failed |= d > Scalar(0) ? 0u : 1u << k;
    const Scalar root = reciprocal_root(d);
    const Scalar y = reciprocal_start(d), e = fma(-d, y, Scalar(1)), v = fma(e, e, e);
    if (k < 7) {
      const Scalar q = b[k][k + 1] * b[k][k + 1] * y;
      d = fma(-q, v, b[k + 1][k + 1] - q);
    }
    const Scalar inverse = fma(y, v, y), scaled = x[k] * inverse;
#pragma unroll
    for (int c = k + 1; c < 8; c++) {
      const Scalar l = b[k][c] * inverse;
#pragma unroll
      for (int r = c; r < 8; r++)
        if (c > k + 1 || r > c) b[c][r] = fma(-b[k][r], l, b[c][r]);
      x[c] = fma(-scaled, b[k][c], x[c]);
    }
    x[k] *= root;
  });
  return failed;
}

// The tile is m x m in shared memory, the identity beyond; entries above its diagonal are ignored. Returns how many
// pivots were not positive (thread 0). L: m x m, lower triangle; inverse: NB x NB, inv(L)^T.
__device__ __noinline__ int cholesky_tile_tensor(const Scalar* tile, int m, Scalar* L, long long ld, Scalar* inverse,
                                                 CholeskyTensorScratch& scratch) {
  constexpr int PARTS = NB / 8;
  static_assert(THREADS == 2 * NB);
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, g = lane >> 2, t = lane & 3;
  const int column = (g >> 1) + 4 * (g & 1);  // tensor core columns 2t, 2t + 1 stand for t, t + 4
  const int panels = (m + 7) >> 3;
  Scalar acc[PARTS][4];  // acc[0] is the current panel
  for_all<PARTS, 4>([&](int p, int q) {
    const int row = warp * 16 + g + (q & 2) * 4, col = p * 8 + t + (q & 1) * 4;
    const Scalar v = tile[tile_at(row, col)];
    acc[p][q] = row >= col ? v : Scalar(0);
  });
  // Entries that the panels do not write: zeros below the diagonal, the identity beyond m.
  for (int e = tid; e < NB * NB / 2; e += THREADS) {
    const int col = e / (NB / 2), row = e % (NB / 2) * 2;
    if (row > (col | 7) || col >= panels * 8)
      store_pair(inverse + col * NB + row,
                 {row == col ? Scalar(1) : Scalar(0), row + 1 == col ? Scalar(1) : Scalar(0)});
  }
  int failed = 0;
#pragma unroll 1
  for (int p = 0; p < panels; p++) {
    const int first = p * 8;
    for_all<4>([&](int q) { scratch.panel[(t + (q & 1) * 4) * STRIDE + warp * 16 + g + (q & 2) * 4] = acc[0][q]; });
    __syncthreads();
    if (tid < NB + 8) {  // a thread a row; the 8 beyond carry the identity rows of this panel
      Scalar b[8][8], x[8];
      for_all<8>([&](int c) {
#pragma unroll
        for (int r = c & ~1; r < 8; r += 2) {
          const Pair v = *(const Pair*)(scratch.panel + c * STRIDE + first + r);
          b[c][r] = v.x;
          b[c][r + 1] = v.y;
        }
      });
      const int identity = tid - NB;
      for_all<8>([&](int c) {
        x[c] = identity < 0 ? scratch.panel[c * STRIDE + tid] : (identity == c ? Scalar(1) : Scalar(0));
      });
      const unsigned not_positive = solve_row8(b, x);
      if (tid == 0) failed += __popc(not_positive & ((1u << min(m - first, 8)) - 1));
      const int behind = tid - first, row = identity < 0 ? tid : first + identity;
      if (behind < 0 || behind >= 8) {  // the panel's own rows enter the update as rows of the inverse
        for_all<8>([&](int c) { scratch.solved[c * STRIDE + row] = x[c]; });
      }
      const bool lower = identity < 0 && behind >= 0;  // a row of L, else of the inverse
      Scalar* to = lower ? L + first * ld + row : inverse + first * NB + row;
      const long long step = lower ? ld : NB;
      const int last = lower ? (row < m ? min(behind, m - 1 - first) : -1) : 7;
      for_all<8>([&](int c) {
        if (c <= last) store_l2(to + c * step, x[c]);
      });
    }
    __syncthreads();
    Scalar a[4];
    for_all<4>([&](int q) { a[q] = -scratch.solved[(t + (q & 2) * 2) * STRIDE + warp * 16 + g + (q & 1) * 8]; });
    // Parts above the diagonal that do not carry the inverse yet are zero. A strip below the panel ends with its
    // diagonal parts: the first is needed in its lower half only, and one zero part follows it down. Of a strip that
    // starts with the panel all but the first are needed in their upper half only.
    const bool below = 2 * warp > p;
    const int half = below           ? 2 * warp - p
                     : 2 * warp == p ? 1
                                     : PARTS,
              last = min(panels - 2 - p, below ? half + 1 : PARTS);
    const Scalar* b = scratch.solved + t * STRIDE + (p + 1) * 8 + column;
#pragma unroll
    for (int u = 0; u < PARTS - 1; u++) {
      if (u > last) break;
      if (u == half) {
        if (below) a[0] = a[2] = Scalar(0);
        else a[1] = a[3] = Scalar(0);
      }
      if (below && u == half + 1) a[1] = a[3] = Scalar(0);
      multiply8(acc[u], a, b[u * 8], b[u * 8 + 4 * STRIDE], acc[u + 1]);
    }
  }
  return failed;
}
#endif
