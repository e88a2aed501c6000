// LDL^T of one front: pivots of order 1 and 2 from its W x W block, as far as their multipliers in the rows below stay
// bounded. simd/ldlt.hpp says how D is kept.
//
// Pivots are sought in blocks of columns as if there were nothing else; then the rows below are divided by them, and
// what turns out too small beside its column is postponed, and tried again when all other columns of the front are done
// (a posteriori threshold pivoting: Duff, Hogg, Lopez, SIAM J. Sci. Comput. 42 (2020)). What never becomes a good pivot
// is taken as it is or, where it is small, perturbed and counted; analysis/delays.hpp leaves its column to the parent.
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

// Scratch that each thread needs for fronts of up to R rows.
off ldlt_scratch(idx R);

// scratch, stats: of each thread, by rank.
template <class T> void ldlt_front(Loops& loops, const LdltBlocks<T>& front, T* const* scratch, const PivotRule& rule,
                                   PivotStats* const* stats);

// x[k] = x[order[k]] for W rows, or the other way round when `inverse`; `work` has W entries.
template <class T> inline void apply_order(idx W, const idx* order, idx nrhs, T* x, off ldx, T* work, bool inverse) {
  for (idx r = 0; r < nrhs; r++, x += ldx) {
    for (idx k = 0; k < W; k++) work[k] = x[k];
    for (idx k = 0; k < W; k++) x[inverse ? order[k] : k] = work[inverse ? k : order[k]];
  }
}

// x <- D^-1 x for W rows.
template <class T> void solve_pivots(idx W, const T* d, const T* e, bool hermitian, idx nrhs, T* x, off ldx);

}  // namespace gs
