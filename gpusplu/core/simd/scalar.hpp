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
template <class S> constexpr int width = Real<S>::complex ? 2 : 1;  // real numbers of an entry

// Views of std::complex arrays as arrays of pairs; other arguments stay as they are.
template <class A> GS_INLINE A&& native(A&& a) { return static_cast<A&&>(a); }
template <class R> GS_INLINE Pair<R>* native(std::complex<R>* p) { return reinterpret_cast<Pair<R>*>(p); }
template <class R> GS_INLINE const Pair<R>* native(const std::complex<R>* p) {
  return reinterpret_cast<const Pair<R>*>(p);
}
template <class T> using native_t = std::remove_reference_t<decltype(*native((T*)nullptr))>;

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
GS_INLINE double square_root(double v) { return __builtin_sqrt(v); }
GS_INLINE float square_root(float v) { return __builtin_sqrtf(v); }
template <class R> GS_INLINE R real_part(R v) { return v; }
template <class R> GS_INLINE R real_part(Pair<R> v) { return v.re; }
template <class S> GS_INLINE S from_real(real<S> v) {
  if constexpr (Real<S>::complex) return {v, real<S>{}};
  else return v;
}

// body(Constant<n>()) for n = count, or the default of its result if `count` is none of the numbers, from 0 to 8.
template <int n> struct Constant { static constexpr int value = n; };
template <int first, int... others> GS_INLINE auto with_constant(int count, auto&& body) {
  using Result = decltype(body(Constant<first>()));
#define GS_CASE(n)                                                                  \
  case n:                                                                           \
    if constexpr (n == first || ((n == others) || ...)) return body(Constant<n>()); \
    else return Result();
  switch (count) { GS_CASE(0) GS_CASE(1) GS_CASE(2) GS_CASE(3) GS_CASE(4) GS_CASE(5) GS_CASE(6) GS_CASE(7) GS_CASE(8) }
#undef GS_CASE
  return Result();
}

}  // namespace gs::GS_SIMD
