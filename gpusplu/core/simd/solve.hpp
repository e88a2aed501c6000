// Triangular solves with one front, four columns at a time: each pass over a right-hand side serves four columns, and
// sums run in several independent chains. All columns of the factor are read along their length.
#pragma once
#include "simd/vec.hpp"

namespace gs::GS_SIMD {

// y -= A v, A n x C.
template <int C, bool conj, class S> GS_INLINE void subtract_columns(idx n, const S* A, off lda, const S* v, S* y) {
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
template <int C, bool conj, class S> GS_INLINE void subtract_dots(idx n, const S* A, off lda, const S* y, S* v) {
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
GS_INLINE void forward_block(idx k, idx W, idx H, const S* T, off ldt, const S* B, off ldb, S* x, S* y) {
  if constexpr (transposed) subtract_dots<C, conj>(k, T + k * ldt, ldt, x, x + k);
  const S* diagonal = T + k + k * ldt;
  S* own = x + k;
  for (int c = 0; c < C; c++) {
    for (int d = 0; d < c; d++)
      own[c] = sub_times(own[c], conjugate<conj>(transposed ? diagonal[d + c * ldt] : diagonal[c + d * ldt]), own[d]);
    if constexpr (!unit) own[c] = times(own[c], inverse(conjugate<conj>(diagonal[c + c * ldt])));
  }
  if constexpr (!transposed) subtract_columns<C, conj>(W - k - C, diagonal + C, ldt, own, own + C);
  subtract_columns<C, conj>(H, B + k * ldb, ldb, own, y);
}

// Columns k .. k+C-1 of the backward solve: T upper, or the transpose of a lower T.
template <int C, bool unit, bool conj, bool transposed, class S>
GS_INLINE void backward_block(idx k, idx W, idx H, const S* T, off ldt, const S* B, off ldb, S* x, const S* y) {
  const S* diagonal = T + k + k * ldt;
  S* own = x + k;
  subtract_dots<C, conj>(H, B + k * ldb, ldb, y, own);
  if constexpr (transposed) subtract_dots<C, conj>(W - k - C, diagonal + C, ldt, own + C, own);
  for (int c = C - 1; c >= 0; c--) {
    for (int d = C - 1; d > c; d--)
      own[c] = sub_times(own[c], conjugate<conj>(transposed ? diagonal[d + c * ldt] : diagonal[c + d * ldt]), own[d]);
    if constexpr (!unit) own[c] = times(own[c], inverse(conjugate<conj>(diagonal[c + c * ldt])));
  }
  if constexpr (!transposed) subtract_columns<C, conj>(k, T + k * ldt, ldt, own, x);
}

// x = T^-1 x, then y -= B x.
template <bool unit, bool conj, bool transposed, class S>
GS_INLINE void forward(idx W, idx H, idx nrhs, const S* T, off ldt, const S* B, off ldb, S* x, off ldx, S* y, off ldy) {
  idx k = 0;
  for (; k + 4 <= W; k += 4)
    for (idx r = 0; r < nrhs; r++)
      forward_block<4, unit, conj, transposed>(k, W, H, T, ldt, B, ldb, x + r * ldx, y + r * ldy);
  for (idx r = 0; r < nrhs; r++) {
    S *xr = x + r * ldx, *yr = y + r * ldy;
    if (W - k == 3) forward_block<3, unit, conj, transposed>(k, W, H, T, ldt, B, ldb, xr, yr);
    else if (W - k == 2) forward_block<2, unit, conj, transposed>(k, W, H, T, ldt, B, ldb, xr, yr);
    else if (W - k == 1) forward_block<1, unit, conj, transposed>(k, W, H, T, ldt, B, ldb, xr, yr);
  }
}

// x = T^-1 (x - B^T y).
template <bool unit, bool conj, bool transposed, class S> GS_INLINE void backward(idx W, idx H, idx nrhs, const S* T,
                                                                                  off ldt, const S* B, off ldb, S* x,
                                                                                  off ldx, const S* y, off ldy) {
  idx k = W & ~3;
  for (idx r = 0; r < nrhs; r++) {
    S* xr = x + r * ldx;
    const S* yr = y + r * ldy;
    if (W - k == 3) backward_block<3, unit, conj, transposed>(k, W, H, T, ldt, B, ldb, xr, yr);
    else if (W - k == 2) backward_block<2, unit, conj, transposed>(k, W, H, T, ldt, B, ldb, xr, yr);
    else if (W - k == 1) backward_block<1, unit, conj, transposed>(k, W, H, T, ldt, B, ldb, xr, yr);
  }
  for (k -= 4; k >= 0; k -= 4)
    for (idx r = 0; r < nrhs; r++)
      backward_block<4, unit, conj, transposed>(k, W, H, T, ldt, B, ldb, x + r * ldx, y + r * ldy);
}

template <class T> static void lu_forward(idx W, idx H, idx nrhs, const T* L, off ldl, T* x, off ldx, T* y, off ldy) {
  forward<true, false, false>(W, H, nrhs, native(L), ldl, native(L) + W, ldl, native(x), ldx, native(y), ldy);
}
template <class T> static void lu_backward(idx W, idx H, idx nrhs, const T* L, off ldl, const T* Ut, off ldu, T* x,
                                           off ldx, const T* y, off ldy) {
  backward<false, false, false>(W, H, nrhs, native(L), ldl, native(Ut), ldu, native(x), ldx, native(y), ldy);
}
template <class T> static void lu_forward_t(idx W, idx H, idx nrhs, const T* L, off ldl, const T* Ut, off ldu, T* x,
                                            off ldx, T* y, off ldy, bool conj) {
  auto f = conj ? forward<false, true, true, std::remove_pointer_t<decltype(native(x))>>
                : forward<false, false, true, std::remove_pointer_t<decltype(native(x))>>;
  f(W, H, nrhs, native(L), ldl, native(Ut), ldu, native(x), ldx, native(y), ldy);
}
template <class T>
static void lu_backward_t(idx W, idx H, idx nrhs, const T* L, off ldl, T* x, off ldx, const T* y, off ldy, bool conj) {
  auto f = conj ? backward<true, true, true, std::remove_pointer_t<decltype(native(x))>>
                : backward<true, false, true, std::remove_pointer_t<decltype(native(x))>>;
  f(W, H, nrhs, native(L), ldl, native(L) + W, ldl, native(x), ldx, native(y), ldy);
}
template <class T>
static void cholesky_forward(idx W, idx H, idx nrhs, const T* L, off ldl, T* x, off ldx, T* y, off ldy, bool conj) {
  auto f = conj ? forward<false, true, false, std::remove_pointer_t<decltype(native(x))>>
                : forward<false, false, false, std::remove_pointer_t<decltype(native(x))>>;
  f(W, H, nrhs, native(L), ldl, native(L) + W, ldl, native(x), ldx, native(y), ldy);
}
template <class T> static void cholesky_backward(idx W, idx H, idx nrhs, const T* L, off ldl, T* x, off ldx, const T* y,
                                                 off ldy, bool conj) {
  auto f = conj ? backward<false, false, true, std::remove_pointer_t<decltype(native(x))>>
                : backward<false, true, true, std::remove_pointer_t<decltype(native(x))>>;
  f(W, H, nrhs, native(L), ldl, native(L) + W, ldl, native(x), ldx, native(y), ldy);
}

}  // namespace gs::GS_SIMD
