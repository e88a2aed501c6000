// LU of one front: the W x W block by recursion on its columns (Toledo, Locality of reference in LU decomposition with
// partial pivoting, SIAM J. Matrix Anal. Appl. 18 (1997)), then the two off-diagonal blocks and the contribution block.
#pragma once
#include "simd/dense_kernels.hpp"
#include "simd/triangular.hpp"

namespace gs::GS_SIMD {

GS_INLINE void swap_entries(idx count, auto* x, auto* y, off step) {
  for (idx i = 0; i < count; i++) {
    const auto t = x[i * step];
    x[i * step] = y[i * step], y[i * step] = t;
  }
}

template <class S> GS_INLINE void swap_columns(idx m, S* x_, S* y_) {
  using R = real<S>;
  R *x = (R*)x_, *y = (R*)y_;
  each_vector<R>(
      m * width<S>, [&](idx i, auto mask) __attribute__((always_inline)) {
        const Vec<R> a = load(x + i, mask), b = load(y + i, mask);
        store(x + i, b, mask), store(y + i, a, mask);
      });
}

// Applies the rule to the pivot and counts it.
template <class S> GS_INLINE S checked_pivot(S pivot, const PivotRule& rule, PivotStats& stats) {
  using R = real<S>;
  const double size = magnitude(pivot);
  stats.min_pivot = size < stats.min_pivot ? size : stats.min_pivot;
  if (__builtin_expect(size > rule.tiny_below && size > rule.perturb_below, 1)) return pivot;
  if (size < rule.tiny_below) stats.n_tiny++;
  if (size < rule.perturb_below) {
    stats.n_perturbed++;
    if (size > 0) pivot = scaled(pivot, R(rule.perturb_below / size));
    else pivot = from_real<S>(R(rule.perturb_below));
  }
  if (!(magnitude(pivot) > 0)) stats.finite = false;
  return pivot;
}

// Largest entry of x (count real numbers).
template <class R> GS_INLINE BitVec<R> largest_of(idx count, const R* x, BitVec<R> seen) {
  each_vector<R>(
      count, [&](idx i, auto mask)
                 __attribute__((always_inline)) { seen = larger(seen, size_bits<R>(load(x + i, mask))); });
  return seen;
}

// |x|, or |re| + |im| in both lanes of a pair, as bits.
template <class S> GS_INLINE BitVec<real<S>> magnitude_bits(Vec<real<S>> v) {
  using R = real<S>;
  if constexpr (Real<S>::complex) {
    const Vec<R> a = (Vec<R>)size_bits<R>(v);
    return (BitVec<R>)(a + swap_pairs(a));
  } else {
    return size_bits<R>(v);
  }
}

// The same value, of which the compiler does not know how it was computed.
template <class V> GS_INLINE V hidden(V v) {
  asm("" : "+x"(v));
  return v;
}

// The largest magnitude of m entries.
template <class S> GS_INLINE Bits<real<S>> largest_magnitude(idx m, const S* x_) {
  using R = real<S>;
  const R* x = (const R*)x_;
  BitVec<R> largest{};
  each_vector<R>(
      m * width<S>, [&](idx i, auto mask) __attribute__((always_inline)) {
        largest = larger(largest, magnitude_bits<S>(load(x + i, mask)));
      });
  return largest_lane<R>(largest);
}

// First row with these magnitude bits.
template <class S> GS_INLINE idx find_row(const S* x, idx m, Bits<real<S>> bits) {
  constexpr idx rows = 64;  // whose largest magnitude is compared first
  idx i = 0;
  while (i + rows < m && largest_magnitude(rows, x + i) != bits) i += rows;
  for (; i < m; i++) {
    if (to_bits(magnitude(x[i])) == bits) return i;
  }
  return 0;  // not reached unless x holds NaN
}

// v s. The order of the operations is the same in all panels: the compiler cannot contract the first product.
template <class S> GS_INLINE Vec<real<S>> times_scalar(Vec<real<S>> v, S s) {
  using R = real<S>;
  if constexpr (!Real<S>::complex) return v * broadcast(s);
  else return v * broadcast(s.re) + hidden(swap_pairs(v) * alternate<R>(-s.im, s.im));
}

// c - l u, in the order of the vectors below.
template <class R> GS_INLINE R sub_multiple(R c, R l, R u) { return c - l * u; }
template <class R> GS_INLINE Pair<R> sub_multiple(Pair<R> c, Pair<R> l, Pair<R> u) {
  return {hidden(c.re - l.re * u.re) + l.im * u.im, hidden(c.im - l.im * u.re) - l.re * u.im};
}

// Column `before` of a panel, all columns before it eliminated: multiplies column before - 1 by s, the inverse of its
// pivot, and subtracts from the column the multiples of those before it, for the m rows below these pivots. Returns the
// largest magnitude of these rows.
template <class S, int before>
__attribute__((noinline)) static Bits<real<S>> next_column_of_panel(idx m, S* A, off lda, S s) {
  using R = real<S>;
  using V = Vec<R>;
  constexpr int w = width<S>;
  S* const top = A + before * lda;
  V u[before], crossed[before];
#pragma GCC unroll 8
  for (int k = 0; k < before; k++) {
    S value = top[k];
#pragma GCC unroll 8
    for (int q = 0; q < k; q++) value = sub_multiple(value, A[k + q * lda], top[q]);
    top[k] = value;
    if constexpr (Real<S>::complex) u[k] = broadcast(value.re), crossed[k] = alternate<R>(-value.im, value.im);
    else u[k] = broadcast(value);
  }
  R* const from = (R*)(A + before);
  BitVec<R> next{};
  each_vector<R>(
      m * w, [&](idx i, auto mask) __attribute__((always_inline)) {
        R* x = from + i;
        R* const column = x + before * lda * w;
        V y = load(column, mask);
#pragma GCC unroll 8
        for (int k = 0; k < before; k++) {
          V l = load(x, mask);
          if (k == before - 1) {
            l = times_scalar<S>(l, s);
            store(x, l, mask);
          }
          y = sub_times_vec(y, l, u[k]);
          if constexpr (Real<S>::complex) y = sub_times_vec(y, swap_pairs(l), crossed[k]);
          next_column(x, lda * w);
        }
        next = larger(next, magnitude_bits<S>(y));
        store(column, y, mask);
      });
  return largest_lane<R>(next);
}

// Unblocked LU of an m x n panel, n <= 8, rows interchanged within the panel. A column is updated when its turn comes:
// it is stored once, and the search for its pivot is part of that.
template <class S>
static void lu_panel(idx m, idx n, S* A, off lda, idx* pivots, const PivotRule& rule, PivotStats& stats) {
  using R = real<S>;
  Bits<R> largest = largest_magnitude(m, A);
  for (idx k = 0;; k++) {
    S* column = A + k * lda;
    const idx p = k + find_row(column + k, m - k, largest);
    pivots[k] = p;
    if (p != k) swap_entries(n, A + k, A + p, lda);
    column[k] = checked_pivot(column[k], rule, stats);
    const S s = inverse(column[k]);
    if (k + 1 == n) {
      R* const x = (R*)(column + n);
      return each_vector<R>((m - n) * width<S>, [&](idx i, auto mask) __attribute__((always_inline)) {
        store(x + i, times_scalar<S>(load(x + i, mask), s), mask);
      });
    }
    largest = with_constant<1, 2, 3, 4, 5, 6, 7>((int)k + 1, [&](auto before) __attribute__((always_inline)) {
      return next_column_of_panel<S, before.value>(m - k - 1, A, lda, s);
    });
  }
}

// LU of a W x W block, W <= 8, unrolled. The pivot search is a predictable branch off the critical path. Updates
// `largest_upper` with the largest entry of U; returns whether rows were interchanged. A NaN propagates to a pivot,
// where it is detected.
template <class S, int W> GS_INLINE bool lu_tiny(S* A, off lda, idx* pivots, S* inverse_diagonal, const PivotRule& rule,
                                                 PivotStats& stats, real<S>& largest_upper) {
  using R = real<S>;
  bool exchanged = false;
#pragma GCC unroll 8
  for (int k = 0; k < W; k++) {
    S* column = A + k * lda;
    const R current = magnitude(column[k]);
    R best = current;
#pragma GCC unroll 8
    for (int i = k + 1; i < W; i++) {
      const R size = magnitude(column[i]);
      best = size > best ? size : best;
    }
    pivots[k] = k;
    if (best > current) {
      int p = k + 1;
      while (p < W - 1 && !(magnitude(column[p]) == best)) p++;
      pivots[k] = p;
      swap_entries(W, A + k, A + p, lda);
      exchanged = true;
    }
    column[k] = checked_pivot(column[k], rule, stats);
    const S s = inverse_diagonal[k] = inverse(column[k]);
#pragma GCC unroll 8
    for (int i = k + 1; i < W; i++) column[i] = times(column[i], s);
#pragma GCC unroll 8
    for (int j = k; j < W; j++) {
      const S u = A[k + j * lda];
      const R size = largest_part(u);
      largest_upper = size > largest_upper ? size : largest_upper;
#pragma GCC unroll 8
      for (int i = k + 1; i < W && j > k; i++) A[i + j * lda] = sub_times(A[i + j * lda], column[i], u);
    }
  }
  return exchanged;
}

template <class S> static void swap_rows(idx n, S* A, off lda, idx k0, idx k1, const idx* pivots) {
  for (idx j = 0; j < n; j++, A += lda)
    for (idx k = k0; k < k1; k++) {
      const idx p = pivots[k];
      const S t = A[k];
      A[k] = A[p], A[p] = t;
    }
}

// LU of an m x n block, m >= n; pivots count from its first row.
template <class S>
static void lu_block(idx m, idx n, S* A, off lda, idx* pivots, const PivotRule& rule, PivotStats& stats) {
  if (n <= block_columns) return lu_panel(m, n, A, lda, pivots, rule, stats);
  const idx n1 = (n / 2 + block_columns - 1) / block_columns * block_columns, n2 = n - n1;
  S* right = A + n1 * lda;
  lu_block(m, n1, A, lda, pivots, rule, stats);
  swap_rows(n2, right, lda, 0, n1, pivots);
  solve_left_unit(n1, n2, right, lda, A, lda);
  update<S, Shape::cols, false>(m - n1, n2, n1, A + n1, lda, right, lda, right + n1, lda, false);
  lu_block(m - n1, n2, right + n1, lda, pivots + n1, rule, stats);
  for (idx k = n1; k < n; k++) pivots[k] += n1;
  swap_rows(n1, A, lda, n1, n, pivots);
}

// Inf and NaN have bits no smaller than Inf.
template <class R> GS_INLINE void add_largest(Bits<R> bits, double& largest, PivotStats& stats) {
  stats.finite = stats.finite & (bits < to_bits(R(__builtin_huge_val())));
  const double value = from_bits<R>(bits);
  largest = value > largest ? value : largest;
}
template <class S> GS_INLINE void add_largest(Largest<S> seen, double& largest, PivotStats& stats) {
  add_largest<real<S>>(largest_lane<real<S>>(seen.bits), largest, stats);
}

// Interchanges the columns of Ut (H rows) as the rows of A11 were.
template <class S> GS_INLINE void swap_upper(idx W, idx H, S* Ut, off ldu, const idx* pivots) {
  for (idx k = 0; k < W; k++)
    if (pivots[k] != k) swap_columns(H, Ut + k * ldu, Ut + pivots[k] * ldu);
}

template <class S> GS_INLINE void add_upper_triangle(idx j0, idx j1, const S* L, off ldl, PivotStats& stats) {
  using R = real<S>;
  Largest<S> upper;
  for (idx j = j0; j < j1; j++) upper.bits = largest_of<R>((j + 1) * width<S>, (const R*)(L + j * ldl), upper.bits);
  add_largest(upper, stats.max_upper, stats);
}

template <class S, int W> __attribute__((noinline)) static void tiny_front(idx H, S* L, off ldl, S* Ut, off ldu, S* C,
                                                                           off ldc, idx* pivots, const PivotRule& rule,
                                                                           PivotStats& stats) {
  using R = real<S>;
  S inverse_diagonal[W];
  R largest_upper = 0;
  Largest<S> multiplier, upper;
  if (lu_tiny<S, W>(L, ldl, pivots, inverse_diagonal, rule, stats, largest_upper)) swap_upper(W, H, Ut, ldu, pivots);
  if (H > 0) {
    solve_block<S, false>(W, H, L + W, ldl, L, 1, ldl, inverse_diagonal, false, multiplier);
    solve_block<S, true>(W, H, Ut, ldu, L, ldl, 1, inverse_diagonal, false, upper);
    update<S, Shape::rows, false>(H, H, W, L + W, ldl, Ut, ldu, C, ldc, false);
    add_largest(multiplier, stats.max_multiplier, stats);
  }
  const Bits<R> bits = largest_lane<R>(upper.bits), inside = to_bits(largest_upper);
  add_largest<R>(bits > inside ? bits : inside, stats.max_upper, stats);
}

// Multipliers inside A11 are at most 1 and are not checked.
template <class S> static void lu_front(idx W, idx H, S* L, off ldl, S* Ut, off ldu, S* C, off ldc, idx* pivots,
                                        const PivotRule& rule, PivotStats& stats) {
  if (W <= block_columns)
    return with_constant<1, 2, 3, 4, 5, 6, 7, 8>(
        W, [&](auto w) __attribute__((always_inline)) {
          tiny_front<S, w.value>(H, L, ldl, Ut, ldu, C, ldc, pivots, rule, stats);
        });
  Largest<S> multiplier, upper;
  lu_block(W, W, L, ldl, pivots, rule, stats);
  add_upper_triangle(0, W, L, ldl, stats);
  swap_upper(W, H, Ut, ldu, pivots);
  solve_right<S, Shape::cols, false>(H, W, L + W, ldl, L, ldl, false, multiplier);
  solve_right<S, Shape::rows, true>(H, W, Ut, ldu, L, ldl, false, upper);
  update<S, Shape::rows, false>(H, H, W, L + W, ldl, Ut, ldu, C, ldc, false);
  add_largest(multiplier, stats.max_multiplier, stats);
  add_largest(upper, stats.max_upper, stats);
}

}  // namespace gs::GS_SIMD
