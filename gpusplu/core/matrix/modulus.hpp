// |v| in double precision, and maxima that keep NaN.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/types.hpp"

namespace gs {

// std::abs of a complex number calls hypot; the plain formula is right unless it over- or underflows.
template <class T> inline double modulus(T v) {
  if constexpr (is_complex<T>) {
    const double re = v.real(), im = v.imag(), square = re * re + im * im;
    return square > 1e-280 && square < 1e300 ? std::sqrt(square) : std::hypot(re, im);
  } else {
    return std::abs((double)v);
  }
}

// The larger one, NaN if either is NaN.
inline double max_or_nan(double largest, double v) { return v > largest || std::isnan(v) ? v : largest; }

// The largest |v[k]| of n; NaN if there is one. Uses vector types, because compilers do not vectorize a loop with
// comparisons that must handle NaN; several of them, because each operation takes a few cycles.
template <class R> R largest_real(const R* v, off n) {
  constexpr int lanes = 16 / sizeof(R), chains = 4;
  using Bits = std::conditional_t<sizeof(R) == 4, std::int32_t, std::int64_t>;
  typedef R Vector __attribute__((vector_size(16)));
  typedef Bits BitVector __attribute__((vector_size(16)));
  Vector largest[chains] = {};
  BitVector unordered = {};
  off k = 0;
  for (; k + chains * lanes <= n; k += chains * lanes)
    for (int c = 0; c < chains; c++) {
      Vector part;
      std::memcpy(&part, v + k + c * lanes, sizeof part);
      unordered |= part != part;
      part = (Vector)((BitVector)part & std::numeric_limits<Bits>::max());
      largest[c] = part > largest[c] ? part : largest[c];
    }
  double all = 0;
  for (int c = 0; c < chains; c++)
    for (int lane = 0; lane < lanes; lane++) all = std::max<double>(all, largest[c][lane]);
  for (; k < n; k++) all = max_or_nan(all, std::abs(v[k]));
  for (int lane = 0; lane < lanes; lane++) all = unordered[lane] ? std::numeric_limits<double>::quiet_NaN() : all;
  return (R)all;
}

// The largest |v[i]|, begin <= i < end; NaN if there is one.
template <class T> inline double largest_modulus(const T* v, off begin, off end) {
  if constexpr (is_complex<T>) {
    double largest = 0;
    for (off i = begin; i < end; i++) largest = max_or_nan(largest, modulus(v[i]));
    return largest;
  } else {
    return largest_real(v + begin, end - begin);
  }
}

}  // namespace gs
