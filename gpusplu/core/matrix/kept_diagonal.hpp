// Whether the diagonal of a matrix can stay where it is for a method that pivots.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

// Of a size in a scaled matrix: fronts take pivots below an absolute size for doubtful. NaN is not.
inline bool is_about_1(double size) {
  constexpr double farthest = 64;
  return size * farthest >= 1 && size <= farthest;
}

// Powers of two by which the largest entry of every row becomes about 1; zeros do not count, and rows of them get 1.
template <class T> std::vector<double> scales_of_rows(PatternView A, const T* values);

// Whether nearly all diagonal entries are acceptable pivots in the matrix with these scales, and no column is small or
// large beside others. `row_scale` may be empty: all ones.
template <class T> bool keeps_diagonal(PatternView A, const T* values, const std::vector<double>& row_scale);

}  // namespace gs
