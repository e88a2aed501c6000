// Dense factorization of one front in parallel loops: PA11 = L11 U11 with partial pivoting inside the W x W block, or
// Cholesky, then the off-diagonal blocks and the contribution block. The layout of a front is described in
// simd/dense_kernels.hpp.
//
// The leader calls. The result depends on the sizes only, not on the number of threads. It does not use BLAS: these
// kernels are faster up to W of about 2000 and within 10% beyond (asv_bench/experiments/dense.py).
#pragma once
#include "base/loops.hpp"
#include "simd/select.hpp"

namespace gs {

// stats: one per thread, by rank.
template <class T> void lu_front(Loops& loops, idx W, idx H, T* L, off ldl, T* Ut, off ldu, T* C, off ldc, idx* pivots,
                                 const PivotRule& rule, PivotStats* const* stats);

// Returns -1, or the first column with a pivot that is not positive (or is NaN).
template <class T> idx cholesky_front(Loops& loops, idx W, idx H, T* L, off ldl, const Strips<T>& C);

// Row interchanges of a front applied to x (W x nrhs): P x, or P^T x when `inverse`.
template <class T> inline void apply_pivots(idx W, const idx* pivots, idx nrhs, T* x, off ldx, bool inverse = false) {
  for (idx r = 0; r < nrhs; r++, x += ldx)
    for (idx i = 0; i < W; i++) {
      const idx k = inverse ? W - 1 - i : i;
      if (const idx p = pivots[k]; p != k) {
        const T t = x[k];
        x[k] = x[p], x[p] = t;
      }
    }
}

inline void merge(PivotStats& into, const PivotStats& other) {
  into.n_perturbed += other.n_perturbed;
  into.n_tiny += other.n_tiny;
  if (other.min_pivot < into.min_pivot) into.min_pivot = other.min_pivot;
  if (other.max_multiplier > into.max_multiplier) into.max_multiplier = other.max_multiplier;
  if (other.max_upper > into.max_upper) into.max_upper = other.max_upper;
  into.finite = into.finite && other.finite;
}

}  // namespace gs
