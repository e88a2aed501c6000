// Whether an analysis of one matrix's values fits other values on the same pattern.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

// Whether a matching of rows and columns for older values (gather), and its scales (empty: all ones), fit these: every
// matched entry is about 1 after scaling, and an acceptable pivot compared with the largest entry of its column. This
// holds for the values that the matching was made for: its scales are rounded to powers of two, and the largest entries
// are 1. With `keeps`, the diagonal was kept instead; it fits if it would be kept again with the same scales. Cost: a
// pass over the values, by as many threads as they are worth.
template <class T> bool matching_fits(PatternView A, const T* values, const std::vector<idx>& row_perm,
                                      const std::vector<idx>& col_perm, const std::vector<double>& row_scale,
                                      const std::vector<double>& col_scale, bool keeps);

// The same for scales only, for LDL^T or one front of all rows: the largest entry of every column is about 1.
template <class T> bool scales_fit(PatternView A, const T* values, const std::vector<double>& row_scale,
                                   const std::vector<double>& col_scale);

}  // namespace gs
