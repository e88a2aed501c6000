// Products with one TILE x TILE tile of the factor by a block of 8 warps, the tile in registers: fronts/solve_large.cu.
//
// A lane (g, t) = (lane / 4, lane % 4) has COLUMNS x ROWS entries, ROWS neighbours in each of COLUMNS columns, and
// loads 16 bytes at a time.
//   by columns, for sums along rows (y += M v): warp w has the columns COLUMNS w ..
//   by rows, for sums along columns (y += M^H x): warp w has the rows COLUMNS w .., a lane of them the rows ROWS t ..
// In both layouts a warp needs COLUMNS values of the vector and no other warp needs them, so that a block polls each
// awaited value once; the remaining sums over the warps go through shared memory.
//
// One right-hand side: multiply-adds; a lane has all values of its warp (by columns), or those of its rows. Several:
// products of small matrices (mma: tensor cores where there are such in double precision), lane (g, t) having the
// values of right-hand side g.
#pragma once
#include "fronts/solve.cuh"

constexpr int TILE = large_tile(sizeof(Scalar));
constexpr int WARPS = SOLVE_WARPS, COLUMNS = TILE / WARPS, ROWS = TILE / 32;
static_assert(WARPS == 8 && COLUMNS == 4 * ROWS);

struct __align__(ROWS * sizeof(Scalar)) Rows {
  Scalar at[ROWS];
};
template <class T> DEVICE Rows load_rows(const T* p) {
  if constexpr (sizeof(T) == sizeof(double) && !is_complex) {  // fewer moves than of four words
    const double2 v = __ldg((const double2*)p);
    return {T(v.x), T(v.y)};  // of type T, or compilers check it for other scalars
  } else {
    return load_record((const Rows*)p);
  }
}

enum Layout { BY_COLUMNS, BY_ROWS };

DEVICE int lane_g() { return (int)(threadIdx.x & 31) >> 2; }
DEVICE int lane_t() { return (int)(threadIdx.x & 3); }
DEVICE int first_of_warp() { return (int)(threadIdx.x >> 5) * COLUMNS; }

// First row and column of the lane's entries m[k] in a tile.
template <int NV, Layout LAYOUT> DEVICE int row_of(int k) {
  if (LAYOUT == BY_ROWS) return first_of_warp() + lane_t() * ROWS;
  if (NV == 1) return (int)(threadIdx.x & 31) * ROWS;
  return ROWS == 2 ? 16 * (k >> 1) + 2 * lane_g() : 8 * k + lane_g();
}
template <int NV, Layout LAYOUT> DEVICE int column_of(int k) {
  if (LAYOUT == BY_ROWS) return lane_g() + 8 * k;
  if (NV == 1) return first_of_warp() + k;
  return first_of_warp() + (ROWS == 2 ? 4 * (k & 1) : 0) + lane_t();
}

// The values of the vector that a lane has: how many, where they are in the tile, and of which right-hand side.
template <int NV, Layout LAYOUT> constexpr int VALUES = LAYOUT == BY_ROWS ? ROWS : NV == 1 ? COLUMNS : COLUMNS / 4;
template <int NV, Layout LAYOUT> DEVICE int place_of(int i) {
  return LAYOUT == BY_ROWS ? row_of<NV, BY_ROWS>(0) + i
         : NV == 1         ? first_of_warp() + i
                           : first_of_warp() + 4 * i + lane_t();
}
template <int NV> DEVICE int side_of() { return NV == 1 ? 0 : min(lane_g(), NV - 1); }

// Calls visit(k, where the entries m[k] are) for a tile of a tall panel with rows from `panel` on. Columns after `last`
// and rows after the leading dimension are replaced by others that exist.
template <int NV, Layout LAYOUT, class Visit>
DEVICE void for_rows(const Scalar* panel, int ld, int row, int column, int last, Visit visit) {
  if constexpr (NV == 1 || LAYOUT == BY_ROWS) {
    constexpr int STEP = LAYOUT == BY_ROWS ? 8 : 1;
    column += column_of<NV, LAYOUT>(0);
    const Scalar* from = panel + min(row + row_of<NV, LAYOUT>(0), ld - ROWS) + (long long)min(column, last) * ld;
    for_all<COLUMNS>([&](int k) {
      visit(k, from);
      if (column + (k + 1) * STEP <= last) from += STEP * ld;
    });
  } else {
    for_all<COLUMNS>([&](int k) {
      visit(k, panel + min(row + row_of<NV, LAYOUT>(k), ld - ROWS) +
                   (long long)min(column + column_of<NV, LAYOUT>(k), last) * ld);
    });
  }
}
template <int NV, Layout LAYOUT>
DEVICE void load_tile(Rows (&m)[COLUMNS], const Scalar* panel, int ld, int row, int column, int last) {
  for_rows<NV, LAYOUT>(panel, ld, row, column, last, [&](int k, const Scalar* from) { m[k] = load_rows(from); });
}
// By rows: zero for the rows from `rows` on: the padding of a panel may be anything.
DEVICE void clear_rows(Rows (&m)[COLUMNS], int rows) {
  for_all<ROWS>([&](int r) {
    if (row_of<1, BY_ROWS>(0) + r >= rows) for_all<COLUMNS>([&](int k) { m[k].at[r] = Scalar(0); });
  });
}

// Shared memory for sums over the warps: [warp][place][NV].
template <int NV> constexpr int PARTIAL = WARPS* TILE* NV;

// A lane's part of the sums M v or M^H x (LU: M^T x) of a warp.
template <int NV, Layout LAYOUT> struct Sums {
  Scalar sum[TILE / 16][4];  // of the tensor core

  DEVICE Sums() {
    for_all<TILE / 16, 4>([&](int q, int e) { sum[q][e] = Scalar(0); });
  }
  DEVICE void add(const Rows (&m)[COLUMNS], const Scalar (&v)[VALUES<NV, LAYOUT>]) {
#pragma unroll
    for (int k = 0; k < COLUMNS; k += LAYOUT == BY_COLUMNS && ROWS == 2 ? 1 : 2) {
      if constexpr (LAYOUT == BY_ROWS)
        for_all<ROWS>([&](int r) {
          mma(sum[k / 2], CHOLESKY ? conj(m[k].at[r]) : m[k].at[r], CHOLESKY ? conj(m[k + 1].at[r]) : m[k + 1].at[r],
              v[r]);
        });
      else if constexpr (ROWS == 2) mma(sum[k / 2], m[k].at[0], m[k].at[1], v[k & 1]);
      else mma(sum[k / 2], m[k].at[0], m[k + 1].at[0], v[0]);
    }
  }
  DEVICE void give(Scalar* partial) const {
    for_all<TILE / 16, 4>([&](int q, int e) {
      const bool pairs = LAYOUT == BY_COLUMNS && ROWS == 2;  // rows 2g, 2g + 1 stand for g, g + 8
      const int place = 16 * q + (pairs ? 2 * lane_g() + (e >> 1) : lane_g() + 8 * (e >> 1));
      const int side = 2 * lane_t() + (e & 1);
      if (side < NV) partial[((threadIdx.x >> 5) * TILE + place) * NV + side] = sum[q][e];
    });
  }
};
template <> struct Sums<1, BY_COLUMNS> {
  Scalar sum[ROWS];

  DEVICE Sums() {
    for_all<ROWS>([&](int r) { sum[r] = Scalar(0); });
  }
  DEVICE void add(const Rows (&m)[COLUMNS], const Scalar (&v)[COLUMNS]) {
    for_all<COLUMNS, ROWS>([&](int k, int r) { sum[r] = mul_add(m[k].at[r], v[k], sum[r]); });
  }
  DEVICE void give(Scalar* partial) const {
    for_all<ROWS>([&](int r) { partial[(threadIdx.x >> 5) * TILE + row_of<1, BY_COLUMNS>(0) + r] = sum[r]; });
  }
};
template <> struct Sums<1, BY_ROWS> {
  Scalar sum[COLUMNS];

  DEVICE Sums() {
    for_all<COLUMNS>([&](int k) { sum[k] = Scalar(0); });
  }
  DEVICE void add(const Rows (&m)[COLUMNS], const Scalar (&x)[ROWS]) {
    for_all<ROWS, COLUMNS>(
        [&](int r, int k) { sum[k] = mul_add(CHOLESKY ? conj(m[k].at[r]) : m[k].at[r], x[r], sum[k]); });
  }
  // The four lanes of a column have a part each.
  DEVICE void give(Scalar* partial) const {
    constexpr int HALF = COLUMNS / 2, QUARTER = COLUMNS / 4;
    const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
    Scalar half[HALF];
    for_all<HALF>(
        [&](int k) { half[k] = (odd ? sum[k + HALF] : sum[k]) + shuffle_xor(odd ? sum[k] : sum[k + HALF], 1); });
    for_all<QUARTER>([&](int k) {
      const Scalar all = (high ? half[k + QUARTER] : half[k]) + shuffle_xor(high ? half[k] : half[k + QUARTER], 2);
      const int column = column_of<1, BY_ROWS>((odd ? HALF : 0) + (high ? QUARTER : 0) + k);
      partial[(threadIdx.x >> 5) * TILE + column] = all;
    });
  }
};
// The sum over the warps at `place` of the tile, of right-hand side `side`.
template <int NV> DEVICE Scalar sum_of_warps(const Scalar* partial, int place, int side) {
  Scalar s[WARPS];
  for_all<WARPS>([&](int w) { s[w] = partial[(w * TILE + place) * NV + side]; });
#pragma unroll
  for (int half = WARPS / 2; half; half /= 2)
#pragma unroll
    for (int w = 0; w < half; w++) s[w] += s[w + half];
  return s[0];
}
