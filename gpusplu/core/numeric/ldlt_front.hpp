// LDL^T of one front: pivots of order 1 and 2 from its W x W block, while their multipliers in the rows below stay
// bounded. simd/ldlt.hpp describes the storage of D.
//
// The pivot search works on blocks of columns without the rows below; then these rows are divided by the pivots. Pivots
// that prove too small relative to their column are postponed and tried again after all other columns of the front (a
// posteriori threshold pivoting: Duff, Hogg, Lopez, SIAM J. Sci. Comput. 42 (2020)). A column that never yields a good
// pivot is used as it is or, if its pivot is small, perturbed and counted; analysis/structure.hpp then moves it up.
//
// The leader calls. The result depends on the sizes and values only, not on the number of threads.
#pragma once
#include "base/loops.hpp"
#include "simd/select.hpp"

namespace gs {

template <class T> struct LdltBlocks {
  idx W, H;
  T* L;  // (W + H) x W, lower triangle
  off ldl;
  Strips<T> C;  // H x H
  T *d, *e;     // W
  idx* order;   // W: column order[k] of the front became pivot k
  bool hermitian;
};

// Scratch per thread for fronts of up to R rows.
off ldlt_scratch(idx R);

// scratch, stats: one per thread, by rank.
template <class T> void ldlt_front(Loops& loops, const LdltBlocks<T>& front, T* const* scratch, const PivotRule& rule,
                                   PivotStats* const* stats);

// x[k] = x[order[k]] for W rows, or the inverse permutation with `inverse`; `work` has W entries.
template <class T> inline void apply_order(idx W, const idx* order, idx nrhs, T* x, off ldx, T* work, bool inverse) {
  for (idx r = 0; r < nrhs; r++, x += ldx) {
    for (idx k = 0; k < W; k++) work[k] = x[k];
    for (idx k = 0; k < W; k++) x[inverse ? order[k] : k] = work[inverse ? k : order[k]];
  }
}

// x <- D^-1 x for W rows.
template <class T> void solve_pivots(idx W, const T* d, const T* e, bool hermitian, idx nrhs, T* x, off ldx);

}  // namespace gs
