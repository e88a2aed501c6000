// Converts an entry of factors, or of the inverse, of a scaled matrix to that of the unscaled matrix.
#pragma once
#include <cmath>

#include "base/types.hpp"

namespace gs {

// v * row_scale * col_scale; the product of these powers of two may leave the range of numbers where the result does
// not.
template <class T> inline T unscaled(T v, double row_scale, double col_scale) {
  const double both = row_scale * col_scale;
  return std::isnormal(both) ? scaled(v, both) : scaled(scaled(v, row_scale), col_scale);
}

}  // namespace gs
