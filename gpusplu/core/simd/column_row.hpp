// Rows of a few adjacent numbers as vectors: the arithmetic of the column LU kernels. Local to one instruction set.
#pragma once

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors never cross a call: everything here is inlined

#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "simd/scalar.hpp"

namespace gs::GS_SIMD {
namespace {

template <class Real, int N> struct Lanes {
  typedef Real type __attribute__((vector_size(N * sizeof(Real)), aligned(sizeof(Real)), may_alias));
};
template <class Real> struct Lanes<Real, 1> { typedef Real type; };

GS_INLINE float absolute(float v) { return __builtin_fabsf(v); }
GS_INLINE double absolute(double v) { return __builtin_fabs(v); }

// a b + c with one rounding where the instruction set can: which product of a sum is rounded must not depend on how the
// compiler arranges the code around it.
GS_INLINE auto fused(auto a, auto b, auto c) {
#ifdef __FMA__
  if constexpr (sizeof(a) == 4) return __builtin_fmaf(a, b, c);
  else return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

// `width` adjacent numbers: one row of a node.
template <class Real, bool Complex, int Width> struct Row {
  static constexpr int size = Width * (Complex ? 2 : 1);  // in Reals
  using Vector = typename Lanes<Real, size>::type;
  using Integer = std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t>;
  using Bits = typename Lanes<Integer, size>::type;
  static constexpr Integer all_but_sign = std::numeric_limits<Integer>::max();

  GS_INLINE Vector load(const Real* p) {
    if constexpr (size == 1) return *p;
    else return *reinterpret_cast<const Vector*>(p);
  }
  GS_INLINE void store(Real* p, Vector v) {
    if constexpr (size == 1) *p = v;
    else *reinterpret_cast<Vector*>(p) = v;
  }
  GS_INLINE Vector zero() {
    if constexpr (size == 1) return 0;
    else return Vector{};
  }
  GS_INLINE Vector rotate(Vector v) {  // times i
    if constexpr (Complex) return rotate(v, all());
    else return v;
  }
  template <int... k> GS_INLINE Vector rotate(Vector v, std::integer_sequence<int, k...>) {
    constexpr Bits signs = {(k % 2 ? 0 : ~all_but_sign)...};
    const Vector swapped = __builtin_shufflevector(v, v, (k ^ 1)...);
    return reinterpret_cast<Vector>(reinterpret_cast<Bits>(swapped) ^ signs);
  }
  // v with zeros before number `begin`, or from number `end` on
  template <int begin> GS_INLINE Vector from(Vector v) { return kept<begin, size>(v, all()); }
  template <int end> GS_INLINE Vector up_to(Vector v) { return kept<0, end>(v, all()); }
  GS_INLINE constexpr auto all() { return std::make_integer_sequence<int, size>(); }
  template <int begin, int end, int... k> GS_INLINE Vector kept(Vector v, std::integer_sequence<int, k...>) {
    if constexpr (size == 1) return begin < end ? v : 0;
    else {
      constexpr Bits mask = {(k >= begin && k < end ? Integer(-1) : Integer(0))...};
      return reinterpret_cast<Vector>(reinterpret_cast<Bits>(v) & mask);
    }
  }
  // acc - l v, with `turned` = i v
  GS_INLINE Vector subtract(Vector acc, const Real* l, Vector v, Vector turned) {
    acc -= l[0] * v;
    if constexpr (Complex) acc -= l[1] * turned;
    return acc;
  }
  GS_INLINE Vector larger(Vector a, Vector b) {  // max(|a|, |b|), number by number; |re|, |im| separately
    if constexpr (size == 1) {
      b = absolute(b);
      return a > b ? a : b;
    } else {
      b = reinterpret_cast<Vector>(reinterpret_cast<Bits>(b) & all_but_sign);
      return a > b ? a : b;
    }
  }
  GS_INLINE Real largest(Vector v) {
    if constexpr (size == 1) return v;
    else {
      Real out = v[0];
      for (int k = 1; k < size; k++) out = v[k] > out ? v[k] : out;
      return out;
    }
  }
};

}  // namespace
}  // namespace gs::GS_SIMD
