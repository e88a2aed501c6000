// Vectors of one instruction set: 64 bytes (v4), 32 (v3) or 16. Complex numbers are pairs of adjacent lanes. A Mask
// marks the lanes that exist at the end of a column; masked-out lanes load as zero.
#pragma once
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <utility>

#include "simd/scalar.hpp"

namespace gs::GS_SIMD {

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#define GS_MASK_REGISTERS 1
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
#define GS_MASK_VECTORS 1
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <class R> struct VecOf { typedef R type __attribute__((vector_size(vector_bytes))); };
template <class R> using Vec = typename VecOf<R>::type;
template <class R> struct BitsOf;
template <> struct BitsOf<float> { using type = int; };
template <> struct BitsOf<double> { using type = std::int64_t; };
template <class R> using Bits = typename BitsOf<R>::type;  // a signed integer as wide as R
template <class R> using BitVec = typename VecOf<Bits<R>>::type;
template <class R> constexpr int lanes = vector_bytes / (int)sizeof(R);

template <class R> GS_INLINE Vec<R> load(const R* p) {
  Vec<R> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class R> GS_INLINE void store(R* p, Vec<R> v) { __builtin_memcpy(p, &v, sizeof v); }
template <class R> GS_INLINE Vec<R> broadcast(R s) { return s - Vec<R>{}; }

// With mask registers, the last vector of a column is always masked, even if it is complete: this takes no longer and
// halves the code to compile.
#if defined(GS_MASK_REGISTERS)
constexpr bool masks_are_free = true;
#else
constexpr bool masks_are_free = false;
#endif

// Lanes lo .. hi-1.
#if defined(GS_MASK_REGISTERS)
template <class R> struct Mask { unsigned bits; };
template <class R> GS_INLINE Mask<R> first_lanes(int n) { return {(1u << n) - 1}; }
template <class R> GS_INLINE Mask<R> without_first(Mask<R> m, int n) { return {m.bits & (~0u << n)}; }
GS_INLINE Vec<double> load(const double* p, Mask<double> m) {
  return (Vec<double>)_mm512_maskz_loadu_pd((__mmask8)m.bits, p);
}
GS_INLINE Vec<float> load(const float* p, Mask<float> m) {
  return (Vec<float>)_mm512_maskz_loadu_ps((__mmask16)m.bits, p);
}
GS_INLINE void store(double* p, Vec<double> v, Mask<double> m) {
  _mm512_mask_storeu_pd(p, (__mmask8)m.bits, (__m512d)v);
}
GS_INLINE void store(float* p, Vec<float> v, Mask<float> m) { _mm512_mask_storeu_ps(p, (__mmask16)m.bits, (__m512)v); }
#elif defined(GS_MASK_VECTORS)
template <class R> struct Mask { BitVec<R> bits; };
template <class R> struct MaskTable { Bits<R> ones[lanes<R>], zeros[lanes<R>], ones_again[lanes<R>]; };
static const MaskTable<double> mask_table_double = {{-1, -1, -1, -1}, {}, {-1, -1, -1, -1}};
static const MaskTable<float> mask_table_float = {
    {-1, -1, -1, -1, -1, -1, -1, -1}, {}, {-1, -1, -1, -1, -1, -1, -1, -1}};
GS_INLINE const Bits<double>* mask_row(double) { return mask_table_double.ones; }
GS_INLINE const Bits<float>* mask_row(float) { return mask_table_float.ones; }
template <class R> GS_INLINE Mask<R> first_lanes(int n) {
  Mask<R> m;
  __builtin_memcpy(&m.bits, mask_row(R()) + lanes<R> - n, sizeof m.bits);
  return m;
}
template <class R> GS_INLINE Mask<R> without_first(Mask<R> m, int n) {
  BitVec<R> rest;
  __builtin_memcpy(&rest, mask_row(R()) + 2 * lanes<R> - n, sizeof rest);
  return {m.bits & rest};
}
GS_INLINE Vec<double> load(const double* p, Mask<double> m) {
  return (Vec<double>)_mm256_maskload_pd(p, (__m256i)m.bits);
}
GS_INLINE Vec<float> load(const float* p, Mask<float> m) { return (Vec<float>)_mm256_maskload_ps(p, (__m256i)m.bits); }
GS_INLINE void store(double* p, Vec<double> v, Mask<double> m) { _mm256_maskstore_pd(p, (__m256i)m.bits, (__m256d)v); }
GS_INLINE void store(float* p, Vec<float> v, Mask<float> m) { _mm256_maskstore_ps(p, (__m256i)m.bits, (__m256)v); }
#else
template <class R> struct Mask { int lo, hi; };
template <class R> GS_INLINE Mask<R> first_lanes(int n) { return {0, n}; }
template <class R> GS_INLINE Mask<R> without_first(Mask<R> m, int n) { return {n > m.lo ? n : m.lo, m.hi}; }
template <class R> GS_INLINE Vec<R> load(const R* p, Mask<R> m) {
  Vec<R> v{};
  for (int i = 0; i < lanes<R>; i++)
    if (i >= m.lo && i < m.hi) v[i] = p[i];
  return v;
}
template <class R> GS_INLINE void store(R* p, Vec<R> v, Mask<R> m) {
  for (int i = 0; i < lanes<R>; i++)
    if (i >= m.lo && i < m.hi) p[i] = v[i];
}
#endif

// In place of a mask: all lanes.
template <class R> struct AllLanes {
  GS_INLINE_MEMBER operator Mask<R>() const { return first_lanes<R>(lanes<R>); }
};
template <class R> GS_INLINE Vec<R> load(const R* p, AllLanes<R>) { return load(p); }
template <class R> GS_INLINE void store(R* p, Vec<R> v, AllLanes<R>) { store(p, v); }

// rows(i, mask) for the vectors of `count` adjacent numbers, each from number i on.
template <class R> GS_INLINE void each_vector(idx count, auto&& rows) {
  idx i = 0;
  for (; i + lanes<R> <= count; i += lanes<R>) rows(i, AllLanes<R>());
  if (i < count) rows(i, first_lanes<R>((int)(count - i)));
}

// c - a b
template <class V> GS_INLINE V sub_times_vec(V c, V a, V b) { return c - a * b; }

// (even, odd, even, odd, ...)
template <class R> GS_INLINE Vec<R> alternate(R even, R odd) {
  Vec<R> v;
  for (int i = 0; i < lanes<R>; i++) v[i] = i % 2 ? odd : even;
  return v;
}

// Lane i gets lane i ^ step. The lane numbers are a pack so that the order is constant, as clang requires.
template <int step, class V, int... lane> GS_INLINE V exchanged(V v, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(v, v, (lane ^ step)...);
}
template <class R, int step, class V> GS_INLINE V exchanged(V v) {
  return exchanged<step>(v, std::make_integer_sequence<int, lanes<R>>());
}
// (re, im) -> (im, re)
template <class V> GS_INLINE V swap_pairs(V v) { return exchanged<std::remove_cvref_t<decltype(v[0])>, 1>(v); }

// Absolute values as integers: ordered like the values, with Inf and NaN above all numbers, so one maximum finds both
// the largest entry and whether all are finite.
template <class R> GS_INLINE BitVec<R> size_bits(Vec<R> v) { return (BitVec<R>)v & ~((BitVec<R>)(-Vec<R>{})); }
template <class B> GS_INLINE B larger(B a, B b) { return a > b ? a : b; }
template <class R, int step = lanes<R> / 2> GS_INLINE Bits<R> largest_lane(BitVec<R> v) {
  if constexpr (step == 0) return v[0];
  else return largest_lane<R, step / 2>(larger(v, exchanged<R, step>(v)));
}
template <class R> GS_INLINE Bits<R> to_bits(R r) {
  Bits<R> b;
  __builtin_memcpy(&b, &r, sizeof b);
  return b;
}
template <class R> GS_INLINE R from_bits(Bits<R> b) {
  R r;
  __builtin_memcpy(&r, &b, sizeof r);
  return r;
}

}  // namespace gs::GS_SIMD
