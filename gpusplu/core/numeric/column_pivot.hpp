// Left-looking LU with partial pivoting: what it needs, what it hands over. The algorithm is in column_pivot.cpp.
#pragma once
#include <vector>

#include "numeric/column_lu.hpp"

namespace gs {

// L, U and the pivot order, by columns, in pivotal row numbers. L without its unit diagonal; U without its diagonal and
// without the part outside the diagonal blocks, which keeps A's entries (`outer`). Unsorted rows; U's in an order in
// which they can be eliminated.
template <class T> struct PivotedColumns {
  std::vector<off> lower_ptr, upper_ptr;
  std::vector<idx> lower_row, upper_row;
  std::vector<T> lower_value, upper_value;
  std::vector<T> pivot;
  std::vector<idx> row_order;  // gather: row k after pivoting is row row_order[k] of B
};

// Factors the diagonal blocks of B = Dr A Dc permuted. row_scale, col_scale: by B's rows and columns, may be null.
// `failed` of the result is a column of B. Time: proportional to the arithmetic, and to the entries of the pruned graph.
template <class T>
FactorInfo factor_with_pivoting(const PermutedPattern& B, const std::vector<idx>& block_ptr, const T* values,
                                const off* source, const real_t<T>* row_scale, const real_t<T>* col_scale,
                                const typename ColumnLU<T>::Options& options, PivotedColumns<T>& out);

}  // namespace gs
