// Whether what was found for the values of one matrix suits those of another on its pattern.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

// Whether rows and columns that were matched for older values, gather, and their scales (empty: all ones) suit these:
// every matched entry is about 1 when it is scaled, and an acceptable pivot beside the largest of its column. Of the
// values that a matching was made for that holds: its scales are rounded to powers of two, the largest entries are 1.
// A diagonal that was kept instead, `keeps`, fits as long as it would be kept again with the same scales.
// Cost: a pass over the values, by as many threads as they are worth.
template <class T> bool matching_fits(PatternView A, const T* values, const std::vector<idx>& row_perm,
                                      const std::vector<idx>& col_perm, const std::vector<double>& row_scale,
                                      const std::vector<double>& col_scale, bool keeps);

// The same of scales by themselves, for LDL^T or one front of all rows: the largest entry of every column is about 1.
template <class T> bool scales_fit(PatternView A, const T* values, const std::vector<double>& row_scale,
                                   const std::vector<double>& col_scale);

}  // namespace gs
