// |v| in double precision, and maxima that keep NaN.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
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

// The largest |v[k]| of n; NaN if there is one: without signs, numbers are in the order of their bits, NaN last.
template <class R> R largest_real(const R* v, off n) {
  using Bits = std::conditional_t<sizeof(R) == 4, std::int32_t, std::int64_t>;
  const auto bits = [&](off k) { return std::bit_cast<Bits>(v[k]) & std::numeric_limits<Bits>::max(); };
  constexpr int chains = 8;  // independent chains, because each comparison takes a few cycles
  Bits largest[chains] = {};
  off k = 0;
  for (; k + chains <= n; k += chains)
    for (int c = 0; c < chains; c++) largest[c] = std::max(largest[c], bits(k + c));
  for (; k < n; k++) largest[0] = std::max(largest[0], bits(k));
  return std::bit_cast<R>(*std::max_element(largest, largest + chains));
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
