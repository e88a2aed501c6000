// |v| in double precision, and maxima that keep NaN.
#pragma once
#include <cmath>

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

}  // namespace gs
