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
  const idx count = m * width<S>;
  idx i = 0;
  for (; i + lanes<R> <= count; i += lanes<R>) {
    const Vec<R> a = load(x + i), b = load(y + i);
    store(x + i, b), store(y + i, a);
  }
  if (i < count) {
    const Mask<R> last = first_lanes<R>((int)(count - i));
    const Vec<R> a = load(x + i, last), b = load(y + i, last);
    store(x + i, b, last), store(y + i, a, last);
  }
}

// The pivot as it is used, after the rule; counts it.
template <class S> GS_INLINE S checked_pivot(S pivot, const PivotRule& rule, PivotStats& stats) {
  using R = real<S>;
  const double size = magnitude(pivot);
  if (size < stats.min_pivot) stats.min_pivot = size;
  if (__builtin_expect(size < rule.tiny_below, 0)) stats.n_tiny++;
  if (__builtin_expect(size < rule.perturb_below, 0)) {
    stats.n_perturbed++;
    if (size > 0) pivot = scaled(pivot, R(rule.perturb_below / size));
    else pivot = from_real<S>(R(rule.perturb_below));
  }
  if (!(magnitude(pivot) > 0)) stats.finite = false;
  return pivot;
}

// Largest entry of x (count real numbers).
template <class R> GS_INLINE BitVec<R> largest_of(idx count, const R* x, BitVec<R> seen) {
  idx i = 0;
  for (; i + lanes<R> <= count; i += lanes<R>) seen = larger(seen, size_bits<R>(load(x + i)));
  if (i < count) seen = larger(seen, size_bits<R>(load(x + i, first_lanes<R>((int)(count - i)))));
  return seen;
}

// Row of the first entry of largest magnitude (|re| + |im|) among x[0 .. m-1].
template <class S> GS_INLINE idx largest_row(idx m, const S* x) {
  idx row = 0;
  real<S> best = magnitude(x[0]);
  for (idx i = 1; i < m; i++) {
    const real<S> size = magnitude(x[i]);
    if (size > best) best = size, row = i;
  }
  return row;
}

// x[i] <- x[i] s
template <class S> GS_INLINE void scale(idx m, S* x, S s) {
  for (idx i = 0; i < m; i++) x[i] = times(x[i], s);
}

// Unblocked LU of an m x n panel, n <= 8, rows interchanged within the panel.
template <class S> static void lu_panel(idx m, idx n, S* A, off lda, idx* pivots, S* inverse_diagonal,
                                        const PivotRule& rule, PivotStats& stats) {
  for (idx k = 0; k < n; k++) {
    S* column = A + k * lda;
    const idx p = k + largest_row(m - k, column + k);
    pivots[k] = p;
    if (p != k) swap_entries(n, A + k, A + p, lda);
    column[k] = checked_pivot(column[k], rule, stats);
    inverse_diagonal[k] = inverse(column[k]);
    scale(m - k - 1, column + k + 1, inverse_diagonal[k]);
    update<S, Shape::cols, false>(m - k - 1, n - k - 1, 1, column + k + 1, lda, A + k + (k + 1) * lda, lda,
                                  A + k + 1 + (k + 1) * lda, lda, false);
  }
}

template <class S> static void swap_rows(idx n, S* A, off lda, idx k0, idx k1, const idx* pivots) {
  for (idx j = 0; j < n; j++, A += lda)
    for (idx k = k0; k < k1; k++) {
      const idx p = pivots[k];
      const S t = A[k];
      A[k] = A[p], A[p] = t;
    }
}

// LU of an m x n block, m >= n; pivots count from the first row.
template <class S> static void lu_block(idx m, idx n, S* A, off lda, idx* pivots, S* inverse_diagonal,
                                        const PivotRule& rule, PivotStats& stats) {
  if (n <= block_columns) return lu_panel(m, n, A, lda, pivots, inverse_diagonal, rule, stats);
  const idx n1 = (n / 2 + block_columns - 1) / block_columns * block_columns, n2 = n - n1;
  S* right = A + n1 * lda;
  lu_block(m, n1, A, lda, pivots, inverse_diagonal, rule, stats);
  swap_rows(n2, right, lda, 0, n1, pivots);
  solve_left_unit(n1, n2, right, lda, A, lda);
  update<S, Shape::cols, false>(m - n1, n2, n1, A + n1, lda, right, lda, right + n1, lda, false);
  lu_block(m - n1, n2, right + n1, lda, pivots + n1, inverse_diagonal + n1, rule, stats);
  for (idx k = n1; k < n; k++) pivots[k] += n1;
  swap_rows(n1, A, lda, n1, n, pivots);
}

template <class S> GS_INLINE void add_largest(const Largest<S>& seen, double& largest, PivotStats& stats) {
  const Bits<real<S>> bits = largest_lane<real<S>>(seen.bits);
  const double value = from_bits<real<S>>(bits);
  if (!(value <= __builtin_huge_val()) || value == __builtin_huge_val()) stats.finite = false;
  if (value > largest) largest = value;
}

constexpr idx inverses_on_stack = 256;

template <class T> static void lu_front(idx W, idx H, T* L_, off ldl, T* Ut_, off ldu, T* C_, off ldc, idx* pivots,
                                        const PivotRule* rule, PivotStats* stats) {
  auto *L = native(L_), *Ut = native(Ut_), *C = native(C_);
  using S = std::remove_pointer_t<decltype(L)>;
  using R = real<S>;
  S on_stack[inverses_on_stack];
  S* inverse_diagonal = W <= inverses_on_stack ? on_stack : (S*)__builtin_malloc(sizeof(S) * W);
  Largest<S> multiplier, upper;
  lu_block(W, W, L, ldl, pivots, inverse_diagonal, *rule, *stats);
  for (idx j = 0; j < W; j++) {
    const R* column = (const R*)(L + j * ldl);
    upper.bits = largest_of<R>((j + 1) * width<S>, column, upper.bits);
    multiplier.bits = largest_of<R>((W - j - 1) * width<S>, column + (j + 1) * width<S>, multiplier.bits);
  }
  if (H > 0) {
    for (idx k = 0; k < W; k++)
      if (pivots[k] != k) swap_columns(H, Ut + k * ldu, Ut + pivots[k] * ldu);
    solve_right<S, Shape::cols, false>(H, W, L + W, ldl, L, ldl, inverse_diagonal, false, multiplier);
    solve_right<S, Shape::rows, true>(H, W, Ut, ldu, L, ldl, nullptr, false, upper);
    update<S, Shape::rows, false>(H, H, W, L + W, ldl, Ut, ldu, C, ldc, false);
  }
  add_largest<S>(multiplier, stats->max_multiplier, *stats);
  add_largest<S>(upper, stats->max_upper, *stats);
  if (inverse_diagonal != on_stack) __builtin_free(inverse_diagonal);
}

}  // namespace gs::GS_SIMD
