// Left-looking LU with partial pivoting: fills nodes of one column each. The algorithm is in column_pivot.cpp.
#pragma once
#include <limits>
#include <vector>

#include "numeric/column_nodes.hpp"

namespace gs {

// Above this, the reciprocal of a pivot is below or near the smallest normal number and has lost digits.
template <class T> constexpr double largest_with_reciprocal = 1 / (16.0 * std::numeric_limits<real_t<T>>::min());

// Factors the diagonal blocks of B = Dr A Dc permuted; row_scale, col_scale: by B's rows and columns, may be null.
// row_order (out, gather): row k after pivoting is row row_order[k] of B. A column in the result is one of B. Time:
// proportional to the arithmetic and to the entries of the pruned graph.
template <class T> FactorInfo factor_with_pivoting(const PermutedPattern& B, const std::vector<idx>& block_ptr,
                                                   const T* values, const real_t<T>* row_scale,
                                                   const real_t<T>* col_scale, const PivotOptions& options,
                                                   ColumnNodes<T>& out, std::vector<idx>& row_order);

}  // namespace gs
