// Triangular solves with one small front and few right-hand sides, where calls and masks would cost more than the
// arithmetic: four columns at a time, everything inlined, sums in several independent chains.
#pragma once
#include "simd/vec.hpp"

namespace gs::GS_SIMD {

// y -= A v, A n x C.
template <int C, bool conj, class S> GS_INLINE void small_columns(idx n, const S* A, off lda, const S* v, S* y) {
  S factor[C];
  for (int c = 0; c < C; c++) factor[c] = v[c];
#pragma GCC ivdep
  for (idx i = 0; i < n; i++) {
    S sum = y[i];
    for (int c = 0; c < C; c++) sum = sub_times(sum, conjugate<conj>(A[i + c * lda]), factor[c]);
    y[i] = sum;
  }
}

// v -= A^T y, A n x C.
template <int C, bool conj, class S> GS_INLINE void small_dots(idx n, const S* A, off lda, const S* y, S* v) {
  constexpr int chains = C >= 3 ? 1 : 4 / C;
  S sum[C * chains] = {};
  idx i = 0;
  if constexpr (!Real<S>::complex) {
    if (n >= 2 * lanes<S>) {
      Vec<S> parts[C] = {};
      for (; i + lanes<S> <= n; i += lanes<S>) {
        const Vec<S> part = load(y + i);
        for (int c = 0; c < C; c++) parts[c] = sub_times_vec(parts[c], load(A + i + c * lda), part);
      }
      for (int c = 0; c < C; c++)
        for (int k = 0; k < lanes<S>; k++) sum[c * chains] += parts[c][k];
    }
  }
  for (; i + chains <= n; i += chains)
    for (int c = 0; c < C; c++)
      for (int k = 0; k < chains; k++)
        sum[c * chains + k] = sub_times(sum[c * chains + k], conjugate<conj>(A[i + k + c * lda]), y[i + k]);
  for (; i < n; i++)
    for (int c = 0; c < C; c++) sum[c * chains] = sub_times(sum[c * chains], conjugate<conj>(A[i + c * lda]), y[i]);
  for (int c = 0; c < C; c++)
    for (int k = 0; k < chains; k++) v[c] = plus(v[c], sum[c * chains + k]);
}

// Columns k .. k+C-1 of the forward solve: T lower, or the transpose of an upper T.
template <int C, bool unit, bool conj, bool transposed, class S>
GS_INLINE void small_forward_block(idx k, idx W, idx H, const S* T, off ldt, const S* B, off ldb, S* x, S* y) {
  if constexpr (transposed) small_dots<C, conj>(k, T + k * ldt, ldt, x, x + k);
  const S* diagonal = T + k + k * ldt;
  S* own = x + k;
  for (int c = 0; c < C; c++) {
    for (int d = 0; d < c; d++)
      own[c] = sub_times(own[c], conjugate<conj>(transposed ? diagonal[d + c * ldt] : diagonal[c + d * ldt]), own[d]);
    if constexpr (!unit) own[c] = times(own[c], inverse(conjugate<conj>(diagonal[c + c * ldt])));
  }
  if constexpr (!transposed) small_columns<C, conj>(W - k - C, diagonal + C, ldt, own, own + C);
  small_columns<C, conj>(H, B + k * ldb, ldb, own, y);
}

// Columns k .. k+C-1 of the backward solve: T upper, or the transpose of a lower T.
template <int C, bool unit, bool conj, bool transposed, class S>
GS_INLINE void small_backward_block(idx k, idx W, idx H, const S* T, off ldt, const S* B, off ldb, S* x, const S* y) {
  const S* diagonal = T + k + k * ldt;
  S* own = x + k;
  small_dots<C, conj>(H, B + k * ldb, ldb, y, own);
  if constexpr (transposed) small_dots<C, conj>(W - k - C, diagonal + C, ldt, own + C, own);
  for (int c = C - 1; c >= 0; c--) {
    for (int d = C - 1; d > c; d--)
      own[c] = sub_times(own[c], conjugate<conj>(transposed ? diagonal[d + c * ldt] : diagonal[c + d * ldt]), own[d]);
    if constexpr (!unit) own[c] = times(own[c], inverse(conjugate<conj>(diagonal[c + c * ldt])));
  }
  if constexpr (!transposed) small_columns<C, conj>(k, T + k * ldt, ldt, own, x);
}

// x = T^-1 x, then y -= B x.
template <bool unit, bool conj, bool transposed, class S>
GS_INLINE void small_forward(idx W, idx H, idx nrhs, const S* T, off ldt, const S* B, off ldb, S* x, off ldx, S* y,
                             off ldy) {
  idx k = 0;
  for (; k + 4 <= W; k += 4)
    for (idx r = 0; r < nrhs; r++)
      small_forward_block<4, unit, conj, transposed>(k, W, H, T, ldt, B, ldb, x + r * ldx, y + r * ldy);
  for (idx r = 0; r < nrhs; r++) {
    S *xr = x + r * ldx, *yr = y + r * ldy;
    if (W - k == 3) small_forward_block<3, unit, conj, transposed>(k, W, H, T, ldt, B, ldb, xr, yr);
    else if (W - k == 2) small_forward_block<2, unit, conj, transposed>(k, W, H, T, ldt, B, ldb, xr, yr);
    else if (W - k == 1) small_forward_block<1, unit, conj, transposed>(k, W, H, T, ldt, B, ldb, xr, yr);
  }
}

// x = T^-1 (x - B^T y).
template <bool unit, bool conj, bool transposed, class S>
GS_INLINE void small_backward(idx W, idx H, idx nrhs, const S* T, off ldt, const S* B, off ldb, S* x, off ldx,
                              const S* y, off ldy) {
  idx k = W & ~3;
  for (idx r = 0; r < nrhs; r++) {
    S* xr = x + r * ldx;
    const S* yr = y + r * ldy;
    if (W - k == 3) small_backward_block<3, unit, conj, transposed>(k, W, H, T, ldt, B, ldb, xr, yr);
    else if (W - k == 2) small_backward_block<2, unit, conj, transposed>(k, W, H, T, ldt, B, ldb, xr, yr);
    else if (W - k == 1) small_backward_block<1, unit, conj, transposed>(k, W, H, T, ldt, B, ldb, xr, yr);
  }
  for (k -= 4; k >= 0; k -= 4)
    for (idx r = 0; r < nrhs; r++)
      small_backward_block<4, unit, conj, transposed>(k, W, H, T, ldt, B, ldb, x + r * ldx, y + r * ldy);
}

// Fronts of up to 64 rows: a column is a few vectors.
GS_INLINE bool is_small(idx W, idx H, idx nrhs) { return nrhs < 4 && W + H <= 64; }

}  // namespace gs::GS_SIMD
