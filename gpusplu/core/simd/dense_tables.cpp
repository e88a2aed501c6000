// Plain kernels (to be replaced by tiles).
#include "simd/dense_kernels.hpp"
#include "simd/scalar.hpp"

namespace gs::GS_SIMD {
namespace {

template <class S> GS_INLINE void note(double& largest, bool& finite, S v) {
  const double m = largest_part(v);
  if (!(magnitude(v) <= 1e300)) finite = false;
  if (m > largest) largest = m;
}

template <class S> GS_INLINE S checked_pivot(S pivot, const PivotRule& rule, PivotStats& stats) {
  using R = real<S>;
  const double size = magnitude(pivot);
  if (size < stats.min_pivot) stats.min_pivot = size;
  if (size < rule.tiny_below) stats.n_tiny++;
  if (size < rule.perturb_below) {
    stats.n_perturbed++;
    if (size > 0) pivot = scaled(pivot, R(rule.perturb_below / size));
    else pivot = from_real<S>(R(rule.perturb_below));
  }
  if (!(magnitude(pivot) > 0) || !(magnitude(pivot) <= 1e300)) stats.finite = false;
  return pivot;
}

template <class T> void lu_front(idx W, idx H, T* L_, off ldl, T* Ut_, off ldu, T* C_, off ldc, idx* pivots,
                                 const PivotRule* rule, PivotStats* stats) {
  auto *L = native(L_), *Ut = native(Ut_), *C = native(C_);
  using S = std::remove_pointer_t<decltype(L)>;
  const idx R = W + H;
  for (idx k = 0; k < W; k++) {
    S* col = L + k * ldl;
    idx p = k;
    for (idx i = k + 1; i < W; i++)
      if (magnitude(col[i]) > magnitude(col[p])) p = i;
    pivots[k] = p;
    if (p != k) {
      for (idx j = 0; j < W; j++) {
        const S t = L[k + j * ldl];
        L[k + j * ldl] = L[p + j * ldl], L[p + j * ldl] = t;
      }
      for (idx i = 0; i < H; i++) {
        const S t = Ut[i + k * ldu];
        Ut[i + k * ldu] = Ut[i + p * ldu], Ut[i + p * ldu] = t;
      }
    }
    col[k] = checked_pivot(col[k], *rule, *stats);
    const S inv = inverse(col[k]);
    for (idx i = 0; i <= k; i++) note(stats->max_upper, stats->finite, col[i]);
    for (idx i = k + 1; i < R; i++) {
      col[i] = times(col[i], inv);
      note(stats->max_multiplier, stats->finite, col[i]);
    }
    for (idx i = 0; i < H; i++) note(stats->max_upper, stats->finite, Ut[i + k * ldu]);
    for (idx j = k + 1; j < W; j++) {
      const S u = L[k + j * ldl], l = col[j];
      for (idx i = k + 1; i < R; i++) L[i + j * ldl] = sub_times(L[i + j * ldl], col[i], u);
      for (idx i = 0; i < H; i++) Ut[i + j * ldu] = sub_times(Ut[i + j * ldu], Ut[i + k * ldu], l);
    }
  }
  for (idx j = 0; j < H; j++)
    for (idx k = 0; k < W; k++) {
      const S u = Ut[j + k * ldu];
      for (idx i = 0; i < H; i++) C[i + j * ldc] = sub_times(C[i + j * ldc], L[W + i + k * ldl], u);
    }
}

template <class T> idx cholesky_front(idx W, idx H, T* L_, off ldl, T* C_, off ldc) {
  auto *L = native(L_), *C = native(C_);
  using S = std::remove_pointer_t<decltype(L)>;
  const idx R = W + H;
  for (idx k = 0; k < W; k++) {
    S* col = L + k * ldl;
    const auto d = real_part(col[k]);
    if (!(d > 0) || !(d <= 1e300)) return k;
    const auto root = sizeof(d) == 8 ? __builtin_sqrt(d) : __builtin_sqrtf(d);
    col[k] = from_real<S>(root);
    for (idx i = k + 1; i < R; i++) col[i] = scaled(col[i], decltype(d)(1 / root));
    for (idx j = k + 1; j < W; j++) {
      const S l = conjugate<true>(col[j]);
      for (idx i = j; i < R; i++) L[i + j * ldl] = sub_times(L[i + j * ldl], col[i], l);
    }
  }
  for (idx j = 0; j < H; j++)
    for (idx k = 0; k < W; k++) {
      const S l = conjugate<true>(L[W + j + k * ldl]);
      for (idx i = j; i < H; i++) C[i + j * ldc] = sub_times(C[i + j * ldc], L[W + i + k * ldl], l);
    }
  return -1;
}

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

template <class T> void lu_forward(idx W, idx H, idx nrhs, const T* L, off ldl, T* x, off ldx, T* y, off ldy) {
  forward<true, false, false>(W, H, nrhs, native(L), ldl, native(L) + W, ldl, native(x), ldx, native(y), ldy);
}
template <class T> void lu_backward(idx W, idx H, idx nrhs, const T* L, off ldl, const T* Ut, off ldu, T* x, off ldx,
                                    const T* y, off ldy) {
  backward<false, false, false>(W, H, nrhs, native(L), ldl, native(Ut), ldu, native(x), ldx, native(y), ldy);
}
template <class T> void lu_forward_t(idx W, idx H, idx nrhs, const T* L, off ldl, const T* Ut, off ldu, T* x, off ldx,
                                     T* y, off ldy, bool conj) {
  auto f = conj ? forward<false, true, true, std::remove_pointer_t<decltype(native(x))>>
                : forward<false, false, true, std::remove_pointer_t<decltype(native(x))>>;
  f(W, H, nrhs, native(L), ldl, native(Ut), ldu, native(x), ldx, native(y), ldy);
}
template <class T>
void lu_backward_t(idx W, idx H, idx nrhs, const T* L, off ldl, T* x, off ldx, const T* y, off ldy, bool conj) {
  auto f = conj ? backward<true, true, true, std::remove_pointer_t<decltype(native(x))>>
                : backward<true, false, true, std::remove_pointer_t<decltype(native(x))>>;
  f(W, H, nrhs, native(L), ldl, native(L) + W, ldl, native(x), ldx, native(y), ldy);
}
template <class T>
void cholesky_forward(idx W, idx H, idx nrhs, const T* L, off ldl, T* x, off ldx, T* y, off ldy, bool conj) {
  auto f = conj ? forward<false, true, false, std::remove_pointer_t<decltype(native(x))>>
                : forward<false, false, false, std::remove_pointer_t<decltype(native(x))>>;
  f(W, H, nrhs, native(L), ldl, native(L) + W, ldl, native(x), ldx, native(y), ldy);
}
template <class T>
void cholesky_backward(idx W, idx H, idx nrhs, const T* L, off ldl, T* x, off ldx, const T* y, off ldy, bool conj) {
  auto f = conj ? backward<false, false, true, std::remove_pointer_t<decltype(native(x))>>
                : backward<false, true, true, std::remove_pointer_t<decltype(native(x))>>;
  f(W, H, nrhs, native(L), ldl, native(L) + W, ldl, native(x), ldx, native(y), ldy);
}

}  // namespace

#define GS_TABLE(T)                                                                                   \
  {                                                                                                   \
    lu_front<T>, cholesky_front<T>, lu_forward<T>, lu_backward<T>, lu_forward_t<T>, lu_backward_t<T>, \
        cholesky_forward<T>, cholesky_backward<T>                                                     \
  }
extern const DenseKernels<float> dense_s;
extern const DenseKernels<double> dense_d;
extern const DenseKernels<std::complex<float>> dense_c;
extern const DenseKernels<std::complex<double>> dense_z;
const DenseKernels<float> dense_s = GS_TABLE(float);
const DenseKernels<double> dense_d = GS_TABLE(double);
const DenseKernels<std::complex<float>> dense_c = GS_TABLE(std::complex<float>);
const DenseKernels<std::complex<double>> dense_z = GS_TABLE(std::complex<double>);

}  // namespace gs::GS_SIMD
