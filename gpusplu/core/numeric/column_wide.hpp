// A column LU in numbers with unlimited exponents, for systems with intermediate results outside the range of the type.
#pragma once
#include <vector>

#include "base/wide.hpp"
#include "numeric/column_nodes.hpp"

namespace gs {

template <class T> class WideColumns {
 public:
  // As factor_with_pivoting without scales.
  FactorInfo factor(const PermutedPattern& B, const std::vector<idx>& block_ptr, const T* values,
                    const PivotOptions& options, std::vector<idx>& row_order);

  // Solves op(B) y = b for one right-hand side: B's entry k is from[k] of b, and to[k] of x.
  void solve(const std::vector<idx>& block_ptr, Trans trans, const idx* from, const T* b, const idx* to, T* x) const;

  ColumnNodes<T> rounded() const;  // infinite or zero where T cannot represent a number
  off bytes() const;

 private:
  using Number = wide_t<T>;
  void solve_plain(const std::vector<idx>& block_ptr, std::vector<Number>& y) const;
  void solve_transposed(const std::vector<idx>& block_ptr, std::vector<Number>& y) const;

  ColumnNodes<Number> columns_;  // of one column each
};

extern template class WideColumns<float>;
extern template class WideColumns<double>;
extern template class WideColumns<std::complex<float>>;
extern template class WideColumns<std::complex<double>>;

}  // namespace gs
