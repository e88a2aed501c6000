// Differences in size between the rows of a scaled matrix.
#pragma once
#include <algorithm>
#include <vector>

#include "base/types.hpp"
#include "matrix/modulus.hpp"

namespace gs {

// The largest scaled entry divided by the largest entry of the row that has only smaller ones; no scales: all ones.
// Scales that were made for other values leave such rows, and pivots that are good relative to the large entries swamp
// them. Infinite if a row has only zeros.
template <class T> double spread_of_rows(PatternView A, const T* values, const std::vector<double>& row_scale,
                                         const std::vector<double>& col_scale) {
  std::vector<double> largest(A.n, 0.0);
  for (idx j = 0; j < A.n; j++)
    for (off k = A.ptr[j]; k < A.ptr[j + 1]; k++) {
      const idx i = A.ind[k];
      const double scale = row_scale.empty() ? 1 : row_scale[i] * col_scale[j];
      largest[i] = std::max(largest[i], modulus(values[k]) * scale);
    }
  const auto [least, most] = std::minmax_element(largest.begin(), largest.end());
  return A.n > 0 ? *most / *least : 1;
}

}  // namespace gs
