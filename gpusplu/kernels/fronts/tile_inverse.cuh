// Inverse of a diagonal tile by Gauss-Jordan elimination with partial pivoting over the rows of the tile.
//
// The tile lives in registers: a warp owns the columns congruent to its number, a lane the rows lane and lane + 32. The
// columns rotate by one register when all warps have eliminated one, so that the current column has a fixed place. Rows
// stay where they are, and unscaled: a pivot row is not touched by its own step, so that later steps see a multiple of
// the right value, which is corrected at the end. The elimination in place leaves the inverse with its rows and columns
// permuted; the store reverses that too. Per pivot one column passes through shared memory, one barrier; the pivot row
// is passed inside each warp. Every warp goes through the choice of the next pivot, so that the code has no branches
// and the other updates fill the gaps of its chain; only the result of the owner of the column is kept. Pivots below
// `tiny` are replaced by that with the same sign.
#pragma once
#include "common/pivots.cuh"
#include "fronts/tile_update.cuh"

struct InverseScratch {
  Scalar column[2][NB];            // multipliers of the current step and the next, 0 in the pivot row
  Scalar row[WARPS][OWN_COLUMNS];  // pivot row, by warp
  Scalar reciprocals[NB];          // of the pivots, by row
  int row_of[NB], column_of[NB];   // pivot of a column; column of which a row is the pivot
};

struct PivotCounts {
  int perturbed, singular;
};

struct PivotChoice {
  Scalar reciprocal;
  int row;
  bool perturbed, singular;
};

// The pivot of a column with entries v: the largest in a row that is not used yet, of equals one of the first m.
DEVICE PivotChoice choose_pivot(const Scalar (&v)[OWN_ROWS], unsigned used, int m, Real tiny, Real singular) {
  const int lane = threadIdx.x & 31;
  unsigned best = 0;
  int best_h = 0;
  for_all<OWN_ROWS>([&](int h) {
    const unsigned bonus = lane + 32 * h < m ? 2 : 1;
    const unsigned size = used >> h & 1 ? 0u : leading_bits(size1(v[h])) + bonus;
    best_h = size > best ? h : best_h;
    best = max(best, size);
  });
  const unsigned top = warp_max(best);
  const int source = __ffs(__ballot_sync(~0u, best == top)) - 1;
  Scalar pivot = shuffle(pick(v, best_h), source);
  PivotChoice choice;
  choice.row = source + 32 * shuffle(best_h, source);
  const Real size = size1(pivot);
  choice.perturbed = !(size >= tiny);
  choice.singular = !(size >= singular);
  if (choice.perturbed) pivot = Scalar(copysign(tiny, real(pivot)));
  choice.reciprocal = reciprocal(pivot);
  return choice;
}

// Stores and counts the choice; by the warp that owns column k.
DEVICE void publish(const PivotChoice& choice, const Scalar (&v)[OWN_ROWS], int k, int m, Scalar* column,
                    InverseScratch& scratch, PivotCounts& counts) {
  const int lane = threadIdx.x & 31;
  for_all<OWN_ROWS>([&](int h) {
    const int row = lane + 32 * h;
    column[row] = row == choice.row ? Scalar(0) : v[h] * choice.reciprocal;
  });
  if (lane == 0) {
    scratch.row_of[k] = choice.row;
    scratch.column_of[choice.row] = k;
    scratch.reciprocals[choice.row] = choice.reciprocal;
  }
  counts.perturbed += choice.perturbed && k < m;
  counts.singular += choice.singular && k < m;
}

// The tile is m x m in shared memory, the identity beyond. inverse: NB x NB in global memory. Counts the pivots below
// `tiny`, which are replaced, and those below `singular` (in thread 0 of the warp that met them).
DEVICE PivotCounts invert_tile(const Scalar* tile, int m, Real tiny, Real singular, Scalar* inverse,
                               InverseScratch& scratch) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  Scalar a[OWN_ROWS][OWN_COLUMNS];
  unsigned used = 0;  // bit h: row lane + 32 h is a pivot already, or beyond the tile
  PivotCounts counts{0, 0};
  const int end = (m + WARPS - 1) / WARPS * WARPS;  // columns of the identity are eliminated like others
  for_all<OWN_COLUMNS, OWN_ROWS>([&](int s, int h) { a[h][s] = tile[tile_at(lane + 32 * h, s * WARPS + warp)]; });
  for_all<OWN_ROWS>([&](int h) {
    if (lane + 32 * h >= end) used |= 1u << h;
  });
  for (int k = end + threadIdx.x; k < NB; k += THREADS) {
    scratch.row_of[k] = scratch.column_of[k] = k;
    scratch.reciprocals[k] = Scalar(1);
  }
  {
    Scalar v[OWN_ROWS];
    for_all<OWN_ROWS>([&](int h) { v[h] = a[h][0]; });
    const PivotChoice choice = choose_pivot(v, used, m, tiny, singular);
    if (warp == 0) publish(choice, v, 0, m, scratch.column[0], scratch, counts);
  }
#pragma unroll 1
  for (int k0 = 0; k0 < end; k0 += WARPS) {
    for_all<WARPS>([&](int w) {
      constexpr int last = WARPS - 1;
      const int k = k0 + w, next = w < last ? 0 : 1;  // register of column k + 1, in the warp that owns it
      __syncthreads();
      const Scalar* column = scratch.column[w & 1];
      const int pivot_row = scratch.row_of[k];
      Scalar multiplier[OWN_ROWS];
      bool is_pivot[OWN_ROWS];
      for_all<OWN_ROWS>([&](int h) {
        multiplier[h] = column[lane + 32 * h];
        is_pivot[h] = lane + 32 * h == pivot_row;
        if (is_pivot[h]) {
          used |= 1u << h;
          for_all<OWN_COLUMNS>([&](int s) { scratch.row[warp][s] = a[h][s]; });
        }
      });
      Scalar ahead[OWN_ROWS];
      for_all<OWN_ROWS>([&](int h) { ahead[h] = a[h][next]; });
      const Scalar factor_ahead = shuffle(pick(ahead, pivot_row >> 5), pivot_row & 31);
      Scalar v[OWN_ROWS];
      for_all<OWN_ROWS>([&](int h) { v[h] = mul_sub(multiplier[h], factor_ahead, ahead[h]); });
      const PivotChoice choice = choose_pivot(v, used, m, tiny, singular);
      __syncwarp();
      const bool owner = warp == w;
      Scalar wrapped[OWN_ROWS];
      for_all<OWN_COLUMNS>([&](int s) {
        const Scalar factor = s == 0 && owner ? Scalar(1) : scratch.row[warp][s];
        for_all<OWN_ROWS>([&](int h) {
          const Scalar old = s == 0 && owner ? Scalar(is_pivot[h] ? 1 : 0) : a[h][s];
          const Scalar updated = mul_sub(multiplier[h], factor, old);
          if (w < last) a[h][s] = updated;
          else if (s > 0) a[h][s - 1] = updated;
          else wrapped[h] = updated;
        });
      });
      if (w == last) {
        for_all<OWN_ROWS>([&](int h) { a[h][OWN_COLUMNS - 1] = wrapped[h]; });
      }
      if (warp == (w + 1) % WARPS && k + 1 < end)
        publish(choice, v, k + 1, m, scratch.column[(w + 1) & 1], scratch, counts);
    });
  }
  __syncthreads();
  for_all<OWN_COLUMNS>([&](int s) {
    const int col = scratch.row_of[(s + end / WARPS) % OWN_COLUMNS * WARPS + warp];
    for_all<OWN_ROWS>([&](int h) {
      const int row = lane + 32 * h;
      if constexpr (LDLT) store_mirrored(inverse, NB, scratch.column_of[row], col, scratch.reciprocals[row] * a[h][s]);
      else store_l2(inverse + col * NB + scratch.column_of[row], scratch.reciprocals[row] * a[h][s]);
    });
  });
  return lane == 0 ? counts : PivotCounts{0, 0};
}
