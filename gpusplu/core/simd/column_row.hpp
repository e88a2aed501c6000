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
    if constexpr (Complex) return rotate(v, std::make_integer_sequence<int, size>());
    else return v;
  }
  template <int... k> GS_INLINE Vector rotate(Vector v, std::integer_sequence<int, k...>) {
    constexpr Bits signs = {(k % 2 ? 0 : ~all_but_sign)...};
    const Vector swapped = __builtin_shufflevector(v, v, (k ^ 1)...);
    return reinterpret_cast<Vector>(reinterpret_cast<Bits>(swapped) ^ signs);
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
