// LDL^T of whole small fronts with pivots that are mostly good in place on the diagonal.
#pragma once
#include "simd/ldlt.hpp"

namespace gs::GS_SIMD {

// Columns k and k + 1 of such a block as a pivot, if nothing in them is larger than the entry that couples them.
template <class S, int W>
GS_INLINE bool take_tiny_pair(int k, S* A, off lda, S* d, S* e, double stop, bool hermitian, real<S>& upper) {
  using R = real<S>;
  if (k + 1 >= W) return false;
  S *one = A + k * lda, *two = one + lda;
  d[k + 1] = real_if(two[k + 1], hermitian);
  const R size = magnitude(one[k + 1]);
  R largest = magnitude(d[k + 1]);
#pragma GCC unroll 8
  for (int i = k + 2; i < W; i++) {
    const R first = magnitude(one[i]), second = magnitude(two[i]);
    largest = first > largest ? first : largest, largest = second > largest ? second : largest;
  }
  if (!(size > stop && size >= largest && is_good_pair(d[k], one[k + 1], d[k + 1], hermitian))) return false;
  upper = size > upper ? size : upper;
  e[k] = one[k + 1], e[k + 1] = one[k + 1] = from_real<S>(0);
  const PairInverse<S> i(d[k], e[k], d[k + 1], hermitian);
#pragma GCC unroll 8
  for (int j = k + 2; j < W; j++) {
    const S l1 = plus(times(one[j], i.i11), times(two[j], i.i21)),
            l2 = plus(times(one[j], i.i12), times(two[j], i.i22));
    const S c1 = conjugate_if(l1, hermitian), c2 = conjugate_if(l2, hermitian);
#pragma GCC unroll 8
    for (int r = j; r < W; r++) A[r + j * lda] = sub_times(sub_times(A[r + j * lda], one[r], c1), two[r], c2);
    one[j] = l1, two[j] = l2;  // row j of these columns is not read again
  }
  return true;
}

// The pivots of a block of W <= 8 columns, unrolled, if they are good in place, on the diagonal or as two neighbours;
// otherwise the block's contents are lost.
template <class S, int W>
GS_INLINE bool ldlt_tiny(S* A, off lda, S* d, S* e, double stop, bool hermitian, PivotStats& stats) {
  using R = real<S>;
  R upper = 0;
  bool is_second = false;  // second column of a pivot of order 2
#pragma GCC unroll 8
  for (int k = 0; k < W; k++) {
    if (is_second) {
      is_second = false;
      continue;
    }
    S* column = A + k * lda;
    d[k] = real_if(column[k], hermitian), e[k] = from_real<S>(0);
    const R own = magnitude(d[k]);
    R below = 0;
#pragma GCC unroll 8
    for (int i = k + 1; i < W; i++) {
      const R size = magnitude(column[i]);
      below = size > below ? size : below;
    }
    if (!is_good_diagonal(own, below, stop)) {
      if (!take_tiny_pair<S, W>(k, A, lda, d, e, stop, hermitian, upper)) return false;
      is_second = true;
      continue;
    }
    upper = own > upper ? own : upper, upper = below > upper ? below : upper;
    const S inverse_d = inverse(d[k]);
#pragma GCC unroll 8
    for (int j = k + 1; j < W; j++) {
      const S l = times(column[j], inverse_d), c = conjugate_if(l, hermitian);
#pragma GCC unroll 8
      for (int i = j; i < W; i++) A[i + j * lda] = sub_times(A[i + j * lda], column[i], c);
      column[j] = l;  // row j of this column is not read again
    }
  }
  note_upper(upper, stats);
  return true;
}

template <class S>
GS_INLINE bool ldlt_any_tiny(idx W, S* A, off lda, S* d, S* e, double stop, bool hermitian, PivotStats& stats) {
  return with_constant<1, 2, 3, 4, 5, 6, 7, 8>(
      W, [&](auto w)
             __attribute__((always_inline)) { return ldlt_tiny<S, w.value>(A, lda, d, e, stop, hermitian, stats); });
}

// A lower bound of the numbers that entries of Y are divided by.
template <class S> GS_INLINE double least_divisor(idx W, const S* d, const S* e) {
  double least = 1e300;
  for (idx k = 0; k < W; k++) {
    const double size = magnitude(d[k]), below = magnitude(e[k]);
    if (below == 0) {
      least = size < least ? size : least;
      continue;
    }
    const double next = magnitude(d[k + 1]), larger = size > next ? size : next;
    const double divisor = below * below / (2 * (larger + below));  // |D^-1| is at most 2 / e^2 times [d2 e; e d1]
    least = divisor < least ? divisor : least;
    k++;
  }
  return least;
}

// A whole front of W <= ldlt_small_columns columns. Returns false, with nothing changed, if a pivot is too small or may
// have multipliers above `most`. Y has (W + H) W entries.
template <class S> static bool ldlt_small_front(idx W, idx H, S* L, off ldl, Strips<S> C, S* d, S* e, idx* order, S* Y,
                                                double stop, double most, bool hermitian, PivotStats& stats) {
  using R = real<S>;
  S *block = Y + (off)H * W, work[2 * ldlt_small_columns];
  idx swaps[ldlt_small_columns];
  PivotStats seen;
  const auto copy_block = [&] {
    for (idx j = 0; j < W; j++) copy_column(W, L + j * ldl, block + j * W);
  };
  copy_block();
  for (idx k = 0; k < W; k++) order[k] = k;
  if (!ldlt_any_tiny(W, block, W, d, e, stop, hermitian, seen)) {
    if (W <= block_columns) copy_block();
    if (find_pivots(LdltBlock<S>{W, block, W, d, e, swaps, work, hermitian}, stop, seen) < W) return false;
    for (idx k = 0; k < W; k++) {
      const idx other = order[k];
      order[k] = order[swaps[k]], order[swaps[k]] = other;
    }
  }
  if (H > 0) {
    for (idx k = 0; k < W; k++) copy_column(H, L + W + order[k] * ldl, Y + k * H);
    Largest<S> upper;
    solve_right<S, Shape::rows, true>(H, W, Y, H, block, W, hermitian, upper);
    const double size = (Real<S>::complex ? 2 : 1) * (double)from_bits<R>(largest_lane<R>(upper.bits));
    if (!(size <= most * least_divisor(W, d, e))) return false;
    note_upper(size, seen);
    divide_by_pivots(H, W, Y, H, d, e, L + W, ldl, hermitian, stats);
    update_strips(0, H, 0, H, W, Y, H, L + W, ldl, C, hermitian);
  }
  for (idx j = 0; j + 1 < W; j++) copy_column(W - j - 1, block + j + 1 + j * W, L + j + 1 + j * ldl);
  note_upper(seen.max_upper, stats);
  return true;
}

}  // namespace gs::GS_SIMD
