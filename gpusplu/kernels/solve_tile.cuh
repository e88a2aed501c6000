// Products with one TILE x TILE tile of the factor by a block of 8 warps, the tile in registers: solve_large.cu.
//
// A lane has COLUMNS x ROWS entries, ROWS neighbours in each of COLUMNS columns, and loads 16 bytes at a time.
//   by columns, for sums along rows (y += M v): warp w has the columns COLUMNS w .., a lane the rows ROWS lane ..
//   by rows, for sums along columns (y += M^H x): warp w has the rows COLUMNS w .., lane (c, t) = (lane / 4, lane % 4)
//   of them the rows ROWS t .., and the columns c, c + 8, ..
// Either way a warp needs COLUMNS values of the vector and no other warp needs them, so that values that are waited for
// are looked at once a block; and what is left are sums over the warps, through shared memory.
#pragma once
#include "large_shape.cuh"
#include "solve.cuh"

constexpr int TILE = large_shape((int)sizeof(Scalar), false).tile;
constexpr int WARPS = SOLVE_THREADS / 32, COLUMNS = TILE / WARPS, ROWS = TILE / 32;
static_assert(WARPS == 8 && COLUMNS == 4 * ROWS);

struct __align__(ROWS * sizeof(Scalar)) Rows {
  Scalar at[ROWS];
};
__device__ __forceinline__ Rows load_rows(const Scalar* p) {
  Rows r;
#if defined(SCALAR_f)
  const float2 v = __ldg((const float2*)p);
  r.at[0] = v.x, r.at[1] = v.y;
#elif defined(SCALAR_F)
  const float4 v = __ldg((const float4*)p);
  r.at[0] = {v.x, v.y}, r.at[1] = {v.z, v.w};
#elif defined(SCALAR_D)
  r.at[0] = load_constant(p);
#else
  const double2 v = __ldg((const double2*)p);
  r.at[0] = v.x, r.at[1] = v.y;
#endif
  return r;
}

// First row of this lane in a tile, and its first column and the distance of its columns.
__device__ __forceinline__ int row_by_columns() { return (int)(threadIdx.x & 31) * ROWS; }
__device__ __forceinline__ int row_by_rows() {
  return (int)(threadIdx.x >> 5) * COLUMNS + (int)(threadIdx.x & 3) * ROWS;
}
__device__ __forceinline__ int column_by_columns(int k) { return (int)(threadIdx.x >> 5) * COLUMNS + k; }
__device__ __forceinline__ int column_by_rows(int k) { return (int)(threadIdx.x >> 2 & 7) + 8 * k; }

// Calls visit(k, where the lane's rows of its column k are) for a tile of a tall panel whose rows begin at `panel`.
// Instead of columns behind `last` and rows behind the leading dimension: the lane's columns before, and the last rows.
template <bool BY_ROWS, class Visit>
__device__ __forceinline__ void for_rows(const Scalar* panel, int ld, int row, int column, int last, Visit visit) {
  constexpr int STEP = BY_ROWS ? 8 : 1;
  column += BY_ROWS ? column_by_rows(0) : column_by_columns(0);
  const Scalar* from =
      panel + min(row + (BY_ROWS ? row_by_rows() : row_by_columns()), ld - ROWS) + (long long)min(column, last) * ld;
#pragma unroll
  for (int k = 0; k < COLUMNS; k++) {
    visit(k, from);
    if (column + (k + 1) * STEP <= last) from += STEP * ld;
  }
}
template <bool BY_ROWS> __device__ __forceinline__ void load_tile(Rows (&m)[COLUMNS], const Scalar* panel, int ld,
                                                                  int row, int column, int last) {
  for_rows<BY_ROWS>(panel, ld, row, column, last, [&](int k, const Scalar* from) { m[k] = load_rows(from); });
}
// Zero for the rows from `rows` on: the padding of a panel may be anything.
__device__ __forceinline__ void clear_rows(Rows (&m)[COLUMNS], int rows) {
#pragma unroll
  for (int r = 0; r < ROWS; r++)
    if (row_by_rows() + r >= rows)
#pragma unroll
      for (int k = 0; k < COLUMNS; k++) m[k].at[r] = Scalar(0);
}
// sum += M v, M by columns; v[k]: the warp's values
template <int NV> __device__ __forceinline__ void multiply_by_columns(Scalar (&sum)[ROWS][NV], const Rows (&m)[COLUMNS],
                                                                      const Scalar (&v)[COLUMNS][NV]) {
#pragma unroll
  for (int k = 0; k < COLUMNS; k++)
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int j = 0; j < NV; j++) sum[r][j] = mul_add(m[k].at[r], v[k][j], sum[r][j]);
}
// sum += M^H x (LU: M^T x), M by rows; x[r]: the lane's values
template <int NV> __device__ __forceinline__ void multiply_by_rows(Scalar (&sum)[COLUMNS][NV], const Rows (&m)[COLUMNS],
                                                                   const Scalar (&x)[ROWS][NV]) {
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int k = 0; k < COLUMNS; k++)
#pragma unroll
      for (int j = 0; j < NV; j++) sum[k][j] = mul_add(CHOLESKY ? conj(m[k].at[r]) : m[k].at[r], x[r][j], sum[k][j]);
}

// Shared memory for sums over the warps: [warp][place][NV].
template <int NV> constexpr int PARTIAL = WARPS* TILE* NV;

template <int NV> __device__ __forceinline__ void give_by_columns(Scalar* partial, const Scalar (&sum)[ROWS][NV]) {
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int j = 0; j < NV; j++) partial[((threadIdx.x >> 5) * TILE + row_by_columns() + r) * NV + j] = sum[r][j];
}
template <int NV> __device__ __forceinline__ void give_by_rows(Scalar* partial, Scalar (&sum)[COLUMNS][NV]) {
  constexpr int HALF = COLUMNS / 2, QUARTER = COLUMNS / 4;
  const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
#pragma unroll
  for (int k = 0; k < HALF; k++)
#pragma unroll
    for (int j = 0; j < NV; j++) {
      const Scalar give = odd ? sum[k][j] : sum[k + HALF][j], keep = odd ? sum[k + HALF][j] : sum[k][j];
      sum[k][j] = keep + shuffle_xor(give, 1);
    }
#pragma unroll
  for (int k = 0; k < QUARTER; k++)
#pragma unroll
    for (int j = 0; j < NV; j++) {
      const Scalar give = high ? sum[k][j] : sum[k + QUARTER][j], keep = high ? sum[k + QUARTER][j] : sum[k][j];
      const int column = column_by_rows((odd ? HALF : 0) + (high ? QUARTER : 0) + k);
      partial[((threadIdx.x >> 5) * TILE + column) * NV + j] = keep + shuffle_xor(give, 2);
    }
}
// The sum over the warps at `place` of the tile, of right-hand side j.
template <int NV> __device__ __forceinline__ Scalar sum_of_warps(const Scalar* partial, int place, int j) {
  Scalar s[WARPS];
#pragma unroll
  for (int w = 0; w < WARPS; w++) s[w] = partial[(w * TILE + place) * NV + j];
#pragma unroll
  for (int half = WARPS / 2; half; half /= 2)
#pragma unroll
    for (int w = 0; w < half; w++) s[w] += s[w + half];
  return s[0];
}
