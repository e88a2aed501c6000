// Triangular solves with one front. Eight columns of the triangle at a time: their diagonal block by scalars, the rest
// by products with eight columns at once, as sums of columns or as dot products. With many right-hand sides the
// products are update(), with a copy of the left operand if it must be transposed or conjugated.
#pragma once
#include "simd/solve_small.hpp"
#include "simd/triangular.hpp"

namespace gs::GS_SIMD {

constexpr idx many_columns = 4;  // right-hand sides from which update() is faster

// A coefficient c as two vectors with a c = a first + swapped(a) second, or conj(a) c.
template <class S> struct Coefficient { Vec<real<S>> first, second; };
template <class S> GS_INLINE Coefficient<S> coefficient(S c, bool conj) {
  using R = real<S>;
  if constexpr (Real<S>::complex)
    return {alternate<R>(c.re, conj ? -c.re : c.re), alternate<R>(conj ? c.im : -c.im, c.im)};
  else return {broadcast(c), Vec<R>{}};
}

// y (m) -= A x for `columns` columns.
template <class S, int columns>
GS_INLINE void subtract_columns(idx m, const S* A_, off lda, const S* x, S* y_, bool conj) {
  using R = real<S>;
  using V = Vec<R>;
  constexpr int w = width<S>;
  const R* A = (const R*)A_;
  R* y = (R*)y_;
  Coefficient<S> c[columns];
#pragma GCC unroll 8
  for (int k = 0; k < columns; k++) c[k] = coefficient(x[k], conj);
  each_vector<R>(
      m * w, [&](idx i, auto mask) __attribute__((always_inline)) {
        V sum = load(y + i, mask);
        const R* a = A + i;
#pragma GCC unroll 8
        for (int k = 0; k < columns; k++) {
          const V v = load(a, mask);
          sum = sub_times_vec(sum, v, c[k].first);
          if constexpr (Real<S>::complex) sum = sub_times_vec(sum, swap_pairs(v), c[k].second);
          next_column(a, lda * w);
        }
        store(y + i, sum, mask);
      });
}

template <class R, int step = lanes<R> / 2> GS_INLINE R sum_lanes(Vec<R> v) {
  if constexpr (step == 0) return v[0];
  else return sum_lanes<R, step / 2>(v + exchanged<R, step>(v));
}

// x[k] -= sum_i A(i, k) y[i] for `columns` columns of m rows.
template <class S, int columns>
GS_INLINE void subtract_dots(idx m, const S* A_, off lda, const S* y_, S* x, bool conj) {
  using R = real<S>;
  using V = Vec<R>;
  constexpr int L = lanes<R>, w = width<S>;
  const R *A = (const R*)A_, *y = (const R*)y_;
  V sum[columns], cross[columns];
#pragma GCC unroll 8
  for (int k = 0; k < columns; k++) sum[k] = cross[k] = V{};
  const idx count = m * w;
  for (idx i = 0; i < count; i += L) {
    const Mask<R> last = first_lanes<R>(count - i < L ? (int)(count - i) : L);
    const bool partial = count - i < L;
    const V v = partial || masks_are_free ? load(y + i, last) : load(y + i);
    const V swapped = swap_pairs(v);
    const R* a = A + i;
#pragma GCC unroll 8
    for (int k = 0; k < columns; k++) {
      const V b = partial || masks_are_free ? load(a, last) : load(a);
      sum[k] = sum[k] + b * v;
      if constexpr (Real<S>::complex) cross[k] = cross[k] + b * swapped;
      next_column(a, lda * w);
    }
  }
#pragma GCC unroll 8
  for (int k = 0; k < columns; k++) {
    if constexpr (Real<S>::complex) {
      const V sign = alternate<R>(1, -1);
      x[k].re -= sum_lanes<R>(conj ? sum[k] : sum[k] * sign);
      x[k].im -= sum_lanes<R>(conj ? cross[k] * sign : cross[k]);
    } else {
      x[k] -= sum_lanes<R>(sum[k]);
    }
  }
}

// y -= A x, or x -= A^T y if `transposed`.
template <class S, bool transposed> __attribute__((noinline)) static void times_vector(idx m, idx columns, const S* A,
                                                                                       off lda, auto* x, auto* y,
                                                                                       bool conj) {
  if (m <= 0) return;
  const auto next = [&](auto count) __attribute__((always_inline)) {
    if constexpr (transposed) subtract_dots<S, count.value>(m, A, lda, y, x, conj);
    else subtract_columns<S, count.value>(m, A, lda, x, y, conj);
    A += count.value * lda, x += count.value;
  };
  for (; columns >= 8; columns -= 8) next(Constant<8>());
  if (columns & 4) next(Constant<4>());
  if (columns & 2) next(Constant<2>());
  if (columns & 1) next(Constant<1>());
}

// Y (m x n) -= op(A) X with op(A) m x K, A itself stored K x m if `transposed`.
template <class S, bool transposed>
static void subtract_product(idx m, idx n, idx K, const S* A, off lda, const S* X, off ldx, S* Y, off ldy, bool conj) {
  if (m <= 0 || K <= 0) return;
  if (n < many_columns) {
    for (idx j = 0; j < n; j++) {
      if constexpr (transposed) times_vector<S, true>(K, m, A, lda, Y + j * ldy, X + j * ldx, conj);
      else times_vector<S, false>(m, K, A, lda, X + j * ldx, Y + j * ldy, conj);
    }
    return;
  }
  if (!transposed && !(conj && Real<S>::complex))
    return update<S, Shape::cols, false>(m, n, K, A, lda, X, ldx, Y, ldy, false);
  constexpr idx rows = 24, depth = 64;
  alignas(64) S copied[rows * depth];
  for (idx k0 = 0; k0 < K; k0 += depth) {
    const idx kk = K - k0 < depth ? K - k0 : depth;
    for (idx i0 = 0; i0 < m; i0 += rows) {
      const idx mm = m - i0 < rows ? m - i0 : rows;
      for (idx i = 0; i < mm; i++)
        for (idx k = 0; k < kk; k++) {
          const S a = transposed ? A[k0 + k + (i0 + i) * lda] : A[i0 + i + (k0 + k) * lda];
          copied[i + k * rows] = conj ? conjugate<true>(a) : a;
        }
      update<S, Shape::cols, false>(mm, n, kk, copied, rows, X + k0, ldx, Y + i0, ldy, false);
    }
  }
}

// x (n <= 8) <- op(T)^-1 x for each right-hand side. `lower` is the shape of op(T), `transposed` the storage of T.
template <class S, bool unit, bool lower, bool transposed>
GS_INLINE void solve_diagonal(idx n, idx nrhs, const S* T, off ldt, S* x, off ldx, bool conj) {
  S inverse_diagonal[block_columns];
  if constexpr (!unit)
    for (idx j = 0; j < n; j++) inverse_diagonal[j] = inverse(conj ? conjugate<true>(T[j + j * ldt]) : T[j + j * ldt]);
  for (idx r = 0; r < nrhs; r++, x += ldx)
    for (idx step = 0; step < n; step++) {
      const idx k = lower ? step : n - 1 - step;
      S v = x[k];
      if constexpr (!unit) x[k] = v = times(v, inverse_diagonal[k]);
      for (idx i = lower ? k + 1 : 0; i < (lower ? n : k); i++) {
        const S t = transposed ? T[k + i * ldt] : T[i + k * ldt];
        x[i] = sub_times(x[i], conj ? conjugate<true>(t) : t, v);
      }
    }
}

// x <- op(T)^-1 x, T of W columns.
template <class S, bool unit, bool lower, bool transposed>
static void solve_triangle(idx W, idx nrhs, const S* T, off ldt, S* x, off ldx, bool conj) {
  const idx blocks = (W + block_columns - 1) / block_columns;
  for (idx step = 0; step < blocks; step++) {
    const idx k0 = (lower ? step : blocks - 1 - step) * block_columns;
    const idx n = W - k0 < block_columns ? W - k0 : block_columns, k1 = k0 + n;
    const S* diagonal = T + k0 + k0 * ldt;
    if constexpr (transposed) {  // first subtract the terms of solved unknowns
      if constexpr (lower) subtract_product<S, true>(n, nrhs, k0, T + k0 * ldt, ldt, x, ldx, x + k0, ldx, conj);
      else subtract_product<S, true>(n, nrhs, W - k1, T + k1 + k0 * ldt, ldt, x + k1, ldx, x + k0, ldx, conj);
      solve_diagonal<S, unit, lower, true>(n, nrhs, diagonal, ldt, x + k0, ldx, conj);
    } else {
      solve_diagonal<S, unit, lower, false>(n, nrhs, diagonal, ldt, x + k0, ldx, conj);
      if constexpr (lower)
        subtract_product<S, false>(W - k1, nrhs, n, T + k1 + k0 * ldt, ldt, x + k0, ldx, x + k1, ldx, conj);
      else subtract_product<S, false>(k0, nrhs, n, T + k0 * ldt, ldt, x + k0, ldx, x, ldx, conj);
    }
  }
}

// x = op(T)^-1 x, then y -= B x: T lower, or an upper one transposed.
template <class S, bool unit, bool transposed> static void front_forward(idx W, idx H, idx nrhs, const S* T, off ldt,
                                                                         const S* B, off ldb, S* x, off ldx, S* y,
                                                                         off ldy, bool conj) {
  if constexpr (unit) conj = false;  // L U is not conjugated, only its transpose
  if (is_small(W, H, nrhs))
    return Real<S>::complex && conj
               ? small_forward<unit, !unit, transposed>(W, H, nrhs, T, ldt, B, ldb, x, ldx, y, ldy)
               : small_forward<unit, false, transposed>(W, H, nrhs, T, ldt, B, ldb, x, ldx, y, ldy);
  solve_triangle<S, unit, true, transposed>(W, nrhs, T, ldt, x, ldx, conj);
  subtract_product<S, false>(H, nrhs, W, B, ldb, x, ldx, y, ldy, conj);
}

// x = op(T)^-1 (x - B^T y): T upper, or a lower one transposed.
template <class S, bool unit, bool transposed> static void front_backward(idx W, idx H, idx nrhs, const S* T, off ldt,
                                                                          const S* B, off ldb, S* x, off ldx,
                                                                          const S* y, off ldy, bool conj) {
  if constexpr (!transposed) conj = false;
  if (is_small(W, H, nrhs))
    return Real<S>::complex && conj
               ? small_backward<unit, transposed, transposed>(W, H, nrhs, T, ldt, B, ldb, x, ldx, y, ldy)
               : small_backward<unit, false, transposed>(W, H, nrhs, T, ldt, B, ldb, x, ldx, y, ldy);
  subtract_product<S, true>(W, nrhs, H, B, ldb, y, ldy, x, ldx, conj);
  solve_triangle<S, unit, false, transposed>(W, nrhs, T, ldt, x, ldx, conj);
}

}  // namespace gs::GS_SIMD
