// Scales of rows and columns, and whether the diagonal of a matrix can stay in place for a method that pivots.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

// The smallest and the largest scale of rows or columns.
struct ScaleRange {
  double least = 1, largest = 1;
};
ScaleRange range_of(const std::vector<double>& scale);

// Acceptable size in a scaled matrix: fronts treat pivots below an absolute size as suspect. False for NaN.
inline bool is_about_1(double size) {
  constexpr double farthest = 64;
  return size * farthest >= 1 && size <= farthest;
}

// Powers of two that scale the largest entry of every row to about 1; zeros do not count, and rows of zeros get 1.
template <class T> std::vector<double> scales_of_rows(PatternView A, const T* values);

// Whether nearly all diagonal entries are acceptable pivots in the matrix with these scales, and no column is small or
// large compared with others. `row_scale` may be empty: all ones.
template <class T> bool keeps_diagonal(PatternView A, const T* values, const std::vector<double>& row_scale);

// The largest scaled entry divided by the largest entry of the row that has only smaller ones; no scales: all ones.
// Scales that were made for other values leave such rows, and pivots that are good relative to the large entries swamp
// them. Infinite if a row has only zeros.
template <class T> double spread_of_rows(PatternView A, const T* values, const std::vector<double>& row_scale,
                                         const std::vector<double>& col_scale);

}  // namespace gs
