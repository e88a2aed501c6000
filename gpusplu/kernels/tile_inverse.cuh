// Inverse of a diagonal tile by Gauss-Jordan elimination with partial pivoting over the rows of the tile.
//
// The tile lives in registers: a warp owns the columns congruent to its number, a lane the rows lane and lane + 32. The
// columns rotate by one register when all warps have eliminated one, so that the current column has a fixed place. Rows
// stay where they are: the elimination in place leaves the inverse with its rows and columns permuted, and the
// permutation is applied when it is stored. Per pivot one column passes through shared memory, one barrier; the pivot
// row is passed inside each warp. Pivots below `tiny` are replaced by that with the same sign.
#pragma once
#include "tile_update.cuh"

struct InverseScratch {
  Scalar column[2][NB];           // multipliers
  Scalar row[WARPS][NB / WARPS];  // pivot row, by warp
  int row_of[NB], column_of[NB];  // pivot of a column; column of which a row is the pivot
};

struct InverseTile {
  static constexpr int ROWS = NB / 32, COLUMNS = NB / WARPS;
  Scalar a[ROWS][COLUMNS];
  unsigned used;  // bit h: row lane + 32 h is a pivot already, or beyond the tile
  int perturbed, singular;

  // Chooses the pivot in column k, whose entries are v, and leaves the multipliers in `column`. Called by all warps,
  // acts on the one that owns the column.
  __device__ __forceinline__ void choose(const Scalar (&v)[ROWS], int k, Real tiny, Real least, Scalar* column,
                                         InverseScratch& scratch) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    unsigned best = 0;
    int best_h = 0;
#pragma unroll
    for (int h = 0; h < ROWS; h++) {
      const unsigned size = used >> h & 1 ? 0u : magnitude(size1(v[h])) + 1u;
      if (size > best) {
        best = size;
        best_h = h;
      }
    }
    const unsigned top = warp_max(best);
    const int source = __ffs(__ballot_sync(~0u, best == top)) - 1;
    Scalar candidate = v[0];
#pragma unroll
    for (int h = 1; h < ROWS; h++)
      if (best_h == h) candidate = v[h];
    Scalar pivot = shuffle(candidate, source);
    const int row = source + 32 * shuffle(best_h, source);
    const Real size = size1(pivot);
    const bool small = !(size >= tiny);
    if (small) pivot = Scalar(copysign(tiny, real(pivot)));
    const Scalar inverse = reciprocal(pivot);
    if (warp != k % WARPS) return;
    perturbed += small;
    singular += !(size >= least);
#pragma unroll
    for (int h = 0; h < ROWS; h++) {
      const int i = lane + 32 * h;
      column[i] = i == row ? -inverse : v[h] * inverse;
    }
    if (lane == 0) {
      scratch.row_of[k] = row;
      scratch.column_of[row] = k;
    }
  }

  static __device__ __forceinline__ unsigned magnitude(float size) { return __float_as_uint(size); }
  static __device__ __forceinline__ unsigned magnitude(double size) { return (unsigned)__double2hiint(size); }
};

struct PivotCounts {
  int perturbed, singular;
};

// The tile is m x m in shared memory, the identity beyond. inverse: NB x NB in global memory. Counts the pivots below
// `tiny`, which are replaced, and those below `singular` (in thread 0 of the warp that met them).
__device__ __forceinline__ PivotCounts invert_tile(const Scalar* tile, int m, Real tiny, Real singular, Scalar* inverse,
                                                   InverseScratch& scratch) {
  constexpr int ROWS = InverseTile::ROWS, COLUMNS = InverseTile::COLUMNS;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  InverseTile t;
  t.used = 0;
  t.perturbed = t.singular = 0;
#pragma unroll
  for (int s = 0; s < COLUMNS; s++)
#pragma unroll
    for (int h = 0; h < ROWS; h++) t.a[h][s] = tile[(s * WARPS + warp) * STRIDE + lane + 32 * h];
#pragma unroll
  for (int h = 0; h < ROWS; h++)
    if (lane + 32 * h >= m) t.used |= 1u << h;
  for (int k = m + threadIdx.x; k < NB; k += THREADS) scratch.row_of[k] = scratch.column_of[k] = k;
  {
    Scalar v[ROWS];
#pragma unroll
    for (int h = 0; h < ROWS; h++) v[h] = t.a[h][0];
    t.choose(v, 0, tiny, singular, scratch.column[0], scratch);
  }
#pragma unroll 1
  for (int k0 = 0; k0 < m; k0 += WARPS) {
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
      constexpr int last = WARPS - 1;
      const int k = k0 + w;
      const bool real_pivot = k < m;  // beyond m nothing changes, but the columns go on rotating to a multiple of WARPS
      __syncthreads();
      const Scalar* column = scratch.column[w & 1];
      const int pivot_row = real_pivot ? scratch.row_of[k] : NB;
      Scalar multiplier[ROWS];
#pragma unroll
      for (int h = 0; h < ROWS; h++) {
        multiplier[h] = real_pivot ? column[lane + 32 * h] : Scalar(0);
        if (lane + 32 * h == pivot_row) {
          t.used |= 1u << h;
#pragma unroll
          for (int s = 0; s < COLUMNS; s++) {
            scratch.row[warp][s] = t.a[h][s];
            t.a[h][s] = Scalar(0);
          }
        }
      }
      __syncwarp();
      const bool owner = real_pivot && warp == w;
      Scalar first[ROWS];
#pragma unroll
      for (int s = 0; s < COLUMNS; s++) {
        Scalar factor = scratch.row[warp][s];
        if (s == 0 && owner) factor = Scalar(1);
        Scalar v[ROWS];
#pragma unroll
        for (int h = 0; h < ROWS; h++) {
          v[h] = mul_sub(multiplier[h], factor, s == 0 && owner ? Scalar(0) : t.a[h][s]);
          if (w < last) t.a[h][s] = v[h];
          else if (s > 0) t.a[h][s - 1] = v[h];
          else first[h] = v[h];
        }
        if (s == (w < last ? 0 : 1) && k + 1 < m)
          t.choose(v, k + 1, tiny, singular, scratch.column[(w + 1) & 1], scratch);
      }
      if (w == last) {
#pragma unroll
        for (int h = 0; h < ROWS; h++) t.a[h][COLUMNS - 1] = first[h];
      }
      __syncwarp();
    }
  }
  __syncthreads();
  const int rotated = (m + WARPS - 1) / WARPS;
#pragma unroll
  for (int s = 0; s < COLUMNS; s++) {
    const int col = scratch.row_of[(s + rotated) % COLUMNS * WARPS + warp];
#pragma unroll
    for (int h = 0; h < ROWS; h++) store_shared_level(inverse + col * NB + scratch.column_of[lane + 32 * h], t.a[h][s]);
  }
  return lane == 0 ? PivotCounts{t.perturbed, t.singular} : PivotCounts{0, 0};
}
