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
                    const PivotOptions& options, std::vector<idx>& row_order) {
    std::vector<Number> wide(B.row.size());
    for (std::size_t p = 0; p < wide.size(); p++) wide[p] = widen(values[p]);
    return factor_with_pivoting<Number>(B, block_ptr, wide.data(), nullptr, nullptr, options, columns_, row_order);
  }

  // Solves op(B) y = b for one right-hand side: B's entry k is from[k] of b, and to[k] of x.
  void solve(const std::vector<idx>& block_ptr, Trans trans, const idx* from, const T* b, const idx* to, T* x) const {
    const bool conjugate = trans == Trans::conj_transpose;
    const idx n = (idx)columns_.pivot.size();
    std::vector<Number> y(n);
    for (idx k = 0; k < n; k++) y[k] = widen(conj_if(b[from[k]], conjugate));
    if (trans == Trans::none) solve_plain(block_ptr, y);
    else solve_transposed(block_ptr, y);
    for (idx k = 0; k < n; k++) x[to[k]] = conj_if(rounded(y[k]), conjugate);
  }

  // Infinite or zero where T cannot represent a number.
  ColumnNodes<T> rounded() const {
    ColumnNodes<T> out;
    out.node = columns_.node;
    out.lower_row = columns_.lower_row, out.upper_row = columns_.upper_row;
    out.a_row = columns_.a_row, out.phase = columns_.phase;
    round_all(columns_.lower, out.lower), round_all(columns_.upper, out.upper);
    round_all(columns_.pivot, out.pivot), round_all(columns_.inverse_pivot, out.inverse_pivot);
    return out;
  }

  off bytes() const {
    const ColumnNodes<Number>& f = columns_;
    return off((f.lower_row.size() + f.upper_row.size()) * (sizeof(Number) + sizeof(idx)) +
               f.pivot.size() * (2 * sizeof(Number) + sizeof(ColumnNode)));
  }

 private:
  using Number = wide_t<T>;

  static Number widen(T v) {
    if constexpr (is_complex<T>) return Number(std::complex<double>(v));
    else return Number((double)v);
  }
  static T rounded(Number v) {
    if constexpr (is_complex<T>) return T(std::complex<double>(v));
    else return T(double(v));
  }
  static void round_all(const auto& from, auto& to) {
    to.resize(from.size());
    for (std::size_t p = 0; p < from.size(); p++) to[p] = rounded(from[p]);
  }

  void solve_plain(const std::vector<idx>& block_ptr, std::vector<Number>& y) const {
    const ColumnNodes<Number>& f = columns_;
    for (std::size_t block = block_ptr.size() - 1; block-- > 0;) {
      const idx begin = block_ptr[block], end = block_ptr[block + 1];
      for (idx k = begin; k < end; k++)
        for (off p = f.node[k].lower_row; p < f.node[k + 1].lower_row; p++) y[f.lower_row[p]] -= f.lower[p] * y[k];
      for (idx k = end; k-- > begin;) {
        y[k] = y[k] / f.pivot[k];
        for (off p = f.node[k].upper_row; p < f.node[k + 1].upper_row; p++) y[f.upper_row[p]] -= f.upper[p] * y[k];
      }
    }
  }

  void solve_transposed(const std::vector<idx>& block_ptr, std::vector<Number>& y) const {
    const ColumnNodes<Number>& f = columns_;
    for (std::size_t block = 0; block + 1 < block_ptr.size(); block++) {
      const idx begin = block_ptr[block], end = block_ptr[block + 1];
      for (idx k = begin; k < end; k++) {
        for (off p = f.node[k].upper_row; p < f.node[k + 1].upper_row; p++) y[k] -= f.upper[p] * y[f.upper_row[p]];
        y[k] = y[k] / f.pivot[k];
      }
      for (idx k = end; k-- > begin;)
        for (off p = f.node[k].lower_row; p < f.node[k + 1].lower_row; p++) y[k] -= f.lower[p] * y[f.lower_row[p]];
    }
  }

  ColumnNodes<Number> columns_;  // of one column each
};

}  // namespace gs
