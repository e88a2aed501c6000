// Values of many systems in lockstep: an entry consists of 64 bytes of real numbers, one number for each system, and
// for complex numbers twice as much. An instruction set with shorter vectors processes an entry in consecutive parts:
// an entry is the adjacent values of its parts, V each.
#pragma once
#include <utility>

#include "simd/vec.hpp"

namespace gs::GS_SIMD {

constexpr int parts = 64 / vector_bytes;

template <class R> struct ComplexLanes { Vec<R> re, im; };
template <class S> struct LanesOf { using type = Vec<S>; };
template <class R> struct LanesOf<Pair<R>> { using type = ComplexLanes<R>; };
template <class S> using Lanes = typename LanesOf<S>::type;

template <class V> struct RealOf { using type = std::remove_cvref_t<decltype(V()[0])>; };
template <class R> struct RealOf<ComplexLanes<R>> { using type = R; };
template <class V> using lane_real = typename RealOf<V>::type;
template <class V> constexpr bool has_pairs = false;
template <class R> constexpr bool has_pairs<ComplexLanes<R>> = true;

template <class R> GS_INLINE ComplexLanes<R> operator+(ComplexLanes<R> a, ComplexLanes<R> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class R> GS_INLINE ComplexLanes<R> operator-(ComplexLanes<R> a, ComplexLanes<R> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class R> GS_INLINE ComplexLanes<R> operator*(ComplexLanes<R> a, ComplexLanes<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class R> GS_INLINE ComplexLanes<R>& operator+=(ComplexLanes<R>& a, ComplexLanes<R> b) { return a = a + b; }

GS_INLINE Vec<float> conj(Vec<float> a) { return a; }
GS_INLINE Vec<double> conj(Vec<double> a) { return a; }
template <class R> GS_INLINE ComplexLanes<R> conj(ComplexLanes<R> a) { return {a.re, -a.im}; }
GS_INLINE Vec<float> mul_sub(Vec<float> a, Vec<float> b, Vec<float> c) { return c - a * b; }
GS_INLINE Vec<double> mul_sub(Vec<double> a, Vec<double> b, Vec<double> c) { return c - a * b; }
template <class R> GS_INLINE ComplexLanes<R> mul_sub(ComplexLanes<R> a, ComplexLanes<R> b, ComplexLanes<R> c) {
  return {c.re - a.re * b.re + a.im * b.im, c.im - a.re * b.im - a.im * b.re};
}

// The elements of an array that belong to one part of the lanes.
template <class V> struct Entries {
  V* p;
  GS_INLINE_MEMBER V& operator[](int i) const { return p[(off)i * parts]; }
  GS_INLINE_MEMBER Entries operator+(off k) const { return {p + k * parts}; }
};

// Stores that bypass the caches, to aligned memory; other threads see them after `stream_end`.
#if defined(GS_MASK_REGISTERS)
template <class R> GS_INLINE void stream(R* p, Vec<R> v) { _mm512_stream_si512((__m512i*)p, (__m512i)v); }
GS_INLINE void stream_end() { _mm_sfence(); }
#elif defined(GS_MASK_VECTORS)
template <class R> GS_INLINE void stream(R* p, Vec<R> v) { _mm256_stream_si256((__m256i*)p, (__m256i)v); }
GS_INLINE void stream_end() { _mm_sfence(); }
#else
template <class R> GS_INLINE void stream(R* p, Vec<R> v) { store(p, v); }
GS_INLINE void stream_end() {}
#endif

// Register tiles: 32 registers with AVX-512, else 16.
template <class V> constexpr int TILE_ROWS = (vector_bytes == 64 ? 4 : 2) / (has_pairs<V> ? 2 : 1);
template <class V> constexpr int TILE_COLUMNS = 4;

// ---- comparisons: a lane of a mask is -1 or 0
template <class R> using LaneMask = BitVec<R>;

#if defined(GS_MASK_REGISTERS)
GS_INLINE bool any(LaneMask<double> m) { return _mm512_movepi64_mask((__m512i)m) != 0; }
GS_INLINE bool any(LaneMask<float> m) { return _mm512_movepi32_mask((__m512i)m) != 0; }
GS_INLINE Vec<double> root(Vec<double> v) { return (Vec<double>)_mm512_maskz_sqrt_pd(0xff, (__m512d)v); }
GS_INLINE Vec<float> root(Vec<float> v) { return (Vec<float>)_mm512_maskz_sqrt_ps(0xffff, (__m512)v); }
#elif defined(GS_MASK_VECTORS)
GS_INLINE bool any(LaneMask<double> m) { return _mm256_movemask_pd((__m256d)m) != 0; }
GS_INLINE bool any(LaneMask<float> m) { return _mm256_movemask_ps((__m256)m) != 0; }
GS_INLINE Vec<double> root(Vec<double> v) { return (Vec<double>)_mm256_sqrt_pd((__m256d)v); }
GS_INLINE Vec<float> root(Vec<float> v) { return (Vec<float>)_mm256_sqrt_ps((__m256)v); }
#else
template <class B> GS_INLINE bool any(B m) {
  auto all = m[0];
  for (int i = 1; i < vector_bytes / (int)sizeof m[0]; i++) all |= m[i];
  return all != 0;
}
GS_INLINE Vec<double> root(Vec<double> v) {
  for (int i = 0; i < lanes<double>; i++) v[i] = __builtin_sqrt(v[i]);
  return v;
}
GS_INLINE Vec<float> root(Vec<float> v) {
  for (int i = 0; i < lanes<float>; i++) v[i] = __builtin_sqrtf(v[i]);
  return v;
}
#endif

template <class R> constexpr R largest_number = sizeof(R) == 4 ? 3.40282347e38 : 1.7976931348623157e308;

template <class R> GS_INLINE Vec<R> absolute(Vec<R> v) { return (Vec<R>)size_bits<R>(v); }
// The larger one; b where either is NaN.
#if defined(GS_MASK_REGISTERS)
GS_INLINE Vec<double> maximum(Vec<double> a, Vec<double> b) {
  return (Vec<double>)_mm512_maskz_max_pd(0xff, (__m512d)a, (__m512d)b);
}
GS_INLINE Vec<float> maximum(Vec<float> a, Vec<float> b) {
  return (Vec<float>)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
}
#elif defined(GS_MASK_VECTORS)
GS_INLINE Vec<double> maximum(Vec<double> a, Vec<double> b) {
  return (Vec<double>)_mm256_max_pd((__m256d)a, (__m256d)b);
}
GS_INLINE Vec<float> maximum(Vec<float> a, Vec<float> b) { return (Vec<float>)_mm256_max_ps((__m256)a, (__m256)b); }
#else
template <class V> GS_INLINE V maximum(V a, V b) { return a > b ? a : b; }
#endif

// |re| + |im|
GS_INLINE Vec<float> size1(Vec<float> v) { return absolute<float>(v); }
GS_INLINE Vec<double> size1(Vec<double> v) { return absolute<double>(v); }
template <class R> GS_INLINE Vec<R> size1(ComplexLanes<R> v) { return absolute<R>(v.re) + absolute<R>(v.im); }

// The modulus, without intermediate overflow or underflow.
GS_INLINE Vec<float> modulus(Vec<float> v) { return absolute<float>(v); }
GS_INLINE Vec<double> modulus(Vec<double> v) { return absolute<double>(v); }
template <class R> GS_INLINE Vec<R> modulus(ComplexLanes<R> v) {
  const Vec<R> re = absolute<R>(v.re), im = absolute<R>(v.im), one = broadcast<R>(1);
  const Vec<R> large = re > im ? re : im, small = re > im ? im : re, share = small / (large == 0 ? one : large);
  return large * root(one + share * share);
}

// Reciprocals. Complex numbers are scaled to about 1 before they are squared.
GS_INLINE Vec<float> reciprocal(Vec<float> v) { return broadcast<float>(1) / v; }
GS_INLINE Vec<double> reciprocal(Vec<double> v) { return broadcast<double>(1) / v; }
template <class R> GS_INLINE ComplexLanes<R> reciprocal(ComplexLanes<R> v) {
  const Vec<R> scale = reciprocal(size1(v)), re = v.re * scale, im = v.im * scale;
  const Vec<R> inverse = scale / (re * re + im * im);
  return {re * inverse, -im * inverse};
}

GS_INLINE Vec<float> times(Vec<float> v, Vec<float> by) { return v * by; }
GS_INLINE Vec<double> times(Vec<double> v, Vec<double> by) { return v * by; }
GS_INLINE ComplexLanes<float> times(ComplexLanes<float> v, Vec<float> by) { return {v.re * by, v.im * by}; }
GS_INLINE ComplexLanes<double> times(ComplexLanes<double> v, Vec<double> by) { return {v.re * by, v.im * by}; }
GS_INLINE Vec<float> real_part(Vec<float> v) { return v; }
GS_INLINE Vec<double> real_part(Vec<double> v) { return v; }
template <class R> GS_INLINE Vec<R> real_part(ComplexLanes<R> v) { return v.re; }
template <class V> GS_INLINE V lanes_of(Vec<lane_real<V>> real) {
  if constexpr (has_pairs<V>) return {real, Vec<lane_real<V>>{}};
  else return real;
}
GS_INLINE Vec<float> choose(LaneMask<float> where, Vec<float> yes, Vec<float> no) { return where ? yes : no; }
GS_INLINE Vec<double> choose(LaneMask<double> where, Vec<double> yes, Vec<double> no) { return where ? yes : no; }
GS_INLINE ComplexLanes<float> choose(LaneMask<float> where, ComplexLanes<float> yes, ComplexLanes<float> no) {
  return {where ? yes.re : no.re, where ? yes.im : no.im};
}
GS_INLINE ComplexLanes<double> choose(LaneMask<double> where, ComplexLanes<double> yes, ComplexLanes<double> no) {
  return {where ? yes.re : no.re, where ? yes.im : no.im};
}

// Exchanges numbers `step` apart of rows `step` apart. The lane numbers are a pack so that orders are constants.
template <class R, int step, int... lane>
GS_INLINE void turn_step(Vec<R> (&v)[sizeof...(lane)], std::integer_sequence<int, lane...>) {
  constexpr int w = sizeof...(lane);
#pragma GCC unroll 16
  for (int i = 0; i < w; i++) {
    if (i & step) continue;
    const Vec<R> a = v[i], b = v[i + step];
    v[i] = __builtin_shufflevector(a, b, (lane & step ? lane - step + w : lane)...);
    v[i + step] = __builtin_shufflevector(a, b, (lane & step ? lane + w : lane + step)...);
  }
}

// Transposes a square of as many rows as a vector has numbers.
template <class R, int step = 1> GS_INLINE void turn(Vec<R> (&v)[lanes<R>]) {
  if constexpr (step < lanes<R>) {
    turn_step<R, step>(v, std::make_integer_sequence<int, lanes<R>>());
    turn<R, 2 * step>(v);
  }
}

}  // namespace gs::GS_SIMD
