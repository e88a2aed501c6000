// |v| in double precision, and maxima that keep NaN.
#pragma once
#include <bit>
#include <cmath>
#include <limits>

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

// The largest |v[i]|, begin <= i < end; NaN if there is one. The bit patterns of numbers without their sign are in the
// order of the numbers, infinity and NaN on top, and a maximum of integers vectorizes where one that keeps NaN does
// not.
template <class T> inline double largest_modulus(const T* v, off begin, off end) {
  if constexpr (is_complex<T>) {
    double largest = 0;
    for (off i = begin; i < end; i++) largest = max_or_nan(largest, modulus(v[i]));
    return largest;
  } else {
    using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    Bits largest = 0;
    for (off i = begin; i < end; i++) {
      const Bits bits = std::bit_cast<Bits>(v[i]) & std::numeric_limits<Bits>::max();
      largest = bits > largest ? bits : largest;
    }
    return std::bit_cast<T>(largest);
  }
}

}  // namespace gs
