// Triangular solves with one front.
#pragma once
#include "simd/vec.hpp"

namespace gs::GS_SIMD {

// x = T^-1 x for a column-oriented lower T (unit or not), then y -= B x.
template <bool unit, bool conj, bool transposed, class S>
GS_INLINE void forward(idx W, idx H, idx nrhs, const S* T, off ldt, const S* B, off ldb, S* x, off ldx, S* y, off ldy) {
  for (idx r = 0; r < nrhs; r++, x += ldx, y += ldy)
    for (idx k = 0; k < W; k++) {
      S v = x[k];
      if constexpr (!unit) x[k] = v = times(v, inverse(conjugate<conj>(T[k + k * ldt])));
      for (idx i = k + 1; i < W; i++)
        x[i] = sub_times(x[i], conjugate<conj>(transposed ? T[k + i * ldt] : T[i + k * ldt]), v);
      for (idx i = 0; i < H; i++) y[i] = sub_times(y[i], conjugate<conj>(B[i + k * ldb]), v);
    }
}

// x = T^-1 (x - B^T y) for an upper T, read from the transpose of a lower one when `transposed`.
template <bool unit, bool conj, bool transposed, class S> GS_INLINE void backward(idx W, idx H, idx nrhs, const S* T,
                                                                                  off ldt, const S* B, off ldb, S* x,
                                                                                  off ldx, const S* y, off ldy) {
  for (idx r = 0; r < nrhs; r++, x += ldx, y += ldy)
    for (idx k = W - 1; k >= 0; k--) {
      S v = x[k];
      for (idx i = 0; i < H; i++) v = sub_times(v, conjugate<conj>(B[i + k * ldb]), y[i]);
      for (idx j = k + 1; j < W; j++)
        v = sub_times(v, conjugate<conj>(transposed ? T[j + k * ldt] : T[k + j * ldt]), x[j]);
      if constexpr (!unit) v = times(v, inverse(conjugate<conj>(T[k + k * ldt])));
      x[k] = v;
    }
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
