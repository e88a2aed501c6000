// Scalar arithmetic of the kernels: real numbers and pairs laid out like std::complex, multiplied without the recovery
// of infinities. Everything is local to one instruction set.
#pragma once
#include "base/types.hpp"

#define GS_INLINE static inline __attribute__((always_inline))
#define GS_INLINE_MEMBER inline __attribute__((always_inline))

namespace gs::GS_SIMD {

template <class R> struct Pair { R re, im; };
template <class S> struct Real {
  using type = S;
  static constexpr bool complex = false;
};
template <class R> struct Real<Pair<R>> {
  using type = R;
  static constexpr bool complex = true;
};
template <class S> using real = typename Real<S>::type;

// Views of std::complex arrays as arrays of pairs.
GS_INLINE float* native(float* p) { return p; }
GS_INLINE double* native(double* p) { return p; }
GS_INLINE Pair<float>* native(std::complex<float>* p) { return reinterpret_cast<Pair<float>*>(p); }
GS_INLINE Pair<double>* native(std::complex<double>* p) { return reinterpret_cast<Pair<double>*>(p); }
GS_INLINE const float* native(const float* p) { return p; }
GS_INLINE const double* native(const double* p) { return p; }
GS_INLINE const Pair<float>* native(const std::complex<float>* p) { return reinterpret_cast<const Pair<float>*>(p); }
GS_INLINE const Pair<double>* native(const std::complex<double>* p) { return reinterpret_cast<const Pair<double>*>(p); }

template <class R> GS_INLINE R magnitude(R v) { return v < 0 ? -v : v; }
template <class R> GS_INLINE R magnitude(Pair<R> v) { return magnitude(v.re) + magnitude(v.im); }
template <class R> GS_INLINE R largest_part(R v) { return magnitude(v); }
template <class R> GS_INLINE R largest_part(Pair<R> v) {
  return magnitude(v.re) > magnitude(v.im) ? magnitude(v.re) : magnitude(v.im);
}

template <class R> GS_INLINE R times(R a, R b) { return a * b; }
template <class R> GS_INLINE Pair<R> times(Pair<R> a, Pair<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class R> GS_INLINE R plus(R a, R b) { return a + b; }
template <class R> GS_INLINE Pair<R> plus(Pair<R> a, Pair<R> b) { return {a.re + b.re, a.im + b.im}; }
// c - a b
template <class R> GS_INLINE R sub_times(R c, R a, R b) { return c - a * b; }
template <class R> GS_INLINE Pair<R> sub_times(Pair<R> c, Pair<R> a, Pair<R> b) {
  return {c.re - a.re * b.re + a.im * b.im, c.im - a.re * b.im - a.im * b.re};
}
template <class R> GS_INLINE R scaled(R v, R s) { return v * s; }
template <class R> GS_INLINE Pair<R> scaled(Pair<R> v, R s) { return {v.re * s, v.im * s}; }
template <bool conj, class R> GS_INLINE R conjugate(R v) { return v; }
template <bool conj, class R> GS_INLINE Pair<R> conjugate(Pair<R> v) { return {v.re, conj ? -v.im : v.im}; }

template <class R> GS_INLINE R inverse(R v) { return R(1) / v; }
// Smith's formula: no overflow where the result is representable.
template <class R> GS_INLINE Pair<R> inverse(Pair<R> v) {
  if (magnitude(v.re) >= magnitude(v.im)) {
    const R q = v.im / v.re, d = R(1) / (v.re + v.im * q);
    return {d, -q * d};
  }
  const R q = v.re / v.im, d = R(1) / (v.re * q + v.im);
  return {q * d, -d};
}
template <class R> GS_INLINE R real_part(R v) { return v; }
template <class R> GS_INLINE R real_part(Pair<R> v) { return v.re; }
template <class S> GS_INLINE S from_real(real<S> v) {
  if constexpr (Real<S>::complex) return {v, 0};
  else return v;
}

}  // namespace gs::GS_SIMD
