// Cholesky factor of a diagonal tile, with the inverse of the triangle as a by-product.
//
// The tile lives in registers: a warp owns the columns congruent to its number, a lane the rows lane and lane + 32. The
// columns move down by one register when all warps have finished one, so that the current column has a fixed place. Per
// pivot one column passes through shared memory, one barrier. The inverse comes Gauss-Jordan style: once row k is
// eliminated its registers carry row k of the identity, which ends as row k of inv(L)^H.
#pragma once
#include "fronts/tile_update.cuh"

struct CholeskyScratch {
  Scalar column[2][NB];
};

// The tile is m x m in shared memory, the identity beyond; entries above its diagonal are ignored. Returns how many
// pivots were not positive (thread 0 of the warp that met them). L: m x m, lower triangle; inverse: NB x NB, inv(L)^H.
DEVICE int cholesky_tile(const Scalar* tile, int m, Scalar* L, long long ld, Scalar* inverse,
                         CholeskyScratch& scratch) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  Scalar a[OWN_ROWS][OWN_COLUMNS];
  for_all<OWN_COLUMNS, OWN_ROWS>([&](int s, int h) { a[h][s] = tile[tile_at(lane + 32 * h, s * WARPS + warp)]; });
  int failed = 0;
  // Column k, which is complete, scaled by its pivot: to global memory and to `column`, by the warp that owns it.
  // Called by all warps. L and the inverse are stored from row (up to row) k.
  const auto finish = [&](const Scalar(&v)[OWN_ROWS], int k, Scalar* column) {
    Real pivot = real(shuffle(pick(v, k >> 5), k & 31));
    const bool positive = pivot > Real(0);
    if (!positive) pivot = Real(1);
    const Real root = reciprocal_root(pivot);
    if (warp != k % WARPS) return;
    for_all<OWN_ROWS>([&](int h) {
      const int row = lane + 32 * h;
      const Scalar scaled = root * v[h];
      column[row] = row == k ? Scalar(root) : scaled;
      if (row >= k && row < m) store_l2(L + k * ld + row, row == k ? Scalar(pivot * root) : scaled);
      store_l2(inverse + k * NB + row, row < k ? scaled : Scalar(row == k ? root : Real(0)));
    });
    failed += !positive;
  };
  Scalar first[OWN_ROWS];
  for_all<OWN_ROWS>([&](int h) { first[h] = a[h][0]; });
  finish(first, 0, scratch.column[0]);
#pragma unroll 1
  for (int k0 = 0; k0 < m; k0 += WARPS) {
    for_all<WARPS>([&](int w) {
      constexpr int last = WARPS - 1;
      const int k = k0 + w;
      __syncthreads();
      const Scalar* column = scratch.column[w & 1];
      Scalar multiplier[OWN_ROWS];
      bool pivot_row[OWN_ROWS];
      for_all<OWN_ROWS>([&](int h) {
        multiplier[h] = column[lane + 32 * h];
        pivot_row[h] = lane + 32 * h == k;
      });
      // The next column first: the chain of pivots goes through it.
      for_all<OWN_COLUMNS>([&](int s) {
        const Scalar factor = conj(column[min(k0 + s * WARPS + warp, NB - 1)]);
        Scalar v[OWN_ROWS];
        for_all<OWN_ROWS>([&](int h) {
          v[h] = mul_sub(multiplier[h], factor, pivot_row[h] ? Scalar(0) : a[h][s]);
          if (w < last) a[h][s] = v[h];
          else if (s > 0) a[h][s - 1] = v[h];
        });
        if (s == (w < last ? 0 : 1) && k + 1 < m) finish(v, k + 1, scratch.column[(w + 1) & 1]);
      });
    });
  }
  for (int e = threadIdx.x; e < (NB - m) * NB; e += THREADS)
    store_l2(inverse + m * NB + e, Scalar(e % NB == m + e / NB ? 1 : 0));
  return lane == 0 ? failed : 0;
}
