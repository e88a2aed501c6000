#include "numeric/column_lu.hpp"

#include <algorithm>
#include <limits>

#include "base/huge_pages.hpp"
#include "certify/accuracy_policy.hpp"
#include "numeric/column_nodes.hpp"
#include "numeric/column_pivot.hpp"
#include "numeric/column_wide.hpp"

namespace gs {

template <class T> ColumnLU<T>::ColumnLU(const Symbolic& symbolic, PatternView A)
    : n_(A.n),
      block_ptr_(symbolic.block_ptr),
      analysis_row_perm_(symbolic.row_perm),
      analysis_row_scale_(symbolic.row_scale),
      col_perm_(symbolic.col_perm) {
  if (block_ptr_.size() < 2) block_ptr_ = {0, n_};
  RawVector<idx> place(n_);
  for (idx i = 0; i < n_; i++) place[analysis_row_perm_[i]] = i;
  pattern_.ptr.resize(n_ + 1);
  pattern_.first.resize(n_);
  pattern_.row.resize(A.nnz());
  pattern_.lower = std::max<off>(0, symbolic.lnz - n_);
  for (RawVector<off>* v : {&pattern_.ptr, &pattern_.first}) prefer_huge_pages(*v);
  prefer_huge_pages(pattern_.row);
  off end = 0;
  for (idx k = 0; k < n_; k++) {
    const idx j = col_perm_[k];
    pattern_.ptr[k] = end;
    pattern_.first[k] = A.ptr[j];
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) pattern_.row[end++] = place[A.ind[p]];
  }
  pattern_.ptr[n_] = end;
  if (!symbolic.col_scale.empty()) {
    scale_col_.resize(n_);
    for (idx k = 0; k < n_; k++) scale_col_[k] = (real_t<T>)symbolic.col_scale[col_perm_[k]];
  }
}

template <class T> ColumnLU<T>::~ColumnLU() = default;
template <class T> ColumnLU<T>::ColumnLU(ColumnLU&&) noexcept = default;

template <class T> FactorInfo ColumnLU<T>::factor(const void* values, const PivotOptions& options) {
  using Real = real_t<T>;
  nodes_.reset(), wide_.reset();
  origin_ = {origin_.choice + 1, false};
  std::vector<Real> row_scale(analysis_row_scale_.empty() ? 0 : n_);
  for (std::size_t k = 0; k < row_scale.size(); k++) row_scale[k] = (Real)analysis_row_scale_[analysis_row_perm_[k]];
  const Real* scale_col = scale_col_.empty() ? nullptr : scale_col_.data();
  ColumnNodes<T> columns;
  std::vector<idx> row_order;
  FactorInfo info =
      factor_with_pivoting<T>(pattern_, block_ptr_, (const T*)values, row_scale.empty() ? nullptr : row_scale.data(),
                              scale_col, options, columns, row_order);
  if (info.status == FactorInfo::ok) {
    scale_row_.resize(row_scale.size());
    for (std::size_t k = 0; k < row_scale.size(); k++) scale_row_[k] = row_scale[row_order[k]];
    bound_ = multiplier_bound(options.pivot_threshold, info.max_multiplier);
    nodes_ = std::make_unique<ColumnNodes<T>>(std::move(columns));
  }
  return describe(info, row_order);
}

template <class T> FactorInfo ColumnLU<T>::factor_wide(const void* values, const PivotOptions& options) {
  nodes_.reset(), wide_.reset();
  origin_ = {origin_.choice + 1, false};
  auto wide = std::make_unique<WideColumns<T>>();
  std::vector<idx> row_order;
  const FactorInfo info = wide->factor(pattern_, block_ptr_, (const T*)values, options, row_order);
  if (info.status == FactorInfo::ok) {
    scale_row_.clear(), scale_col_.clear(), analysis_row_scale_.clear();
    nodes_ = std::make_unique<ColumnNodes<T>>(wide->rounded());
    wide_ = std::move(wide);
  }
  return describe(info, row_order);
}

// Describes a factorization that produced the order of rows and, if it succeeded, nodes_.
template <class T> FactorInfo ColumnLU<T>::describe(FactorInfo info, const std::vector<idx>& row_order) {
  if (info.status != FactorInfo::ok) {
    info.column = col_perm_[info.column];
    return info;
  }
  row_perm_.resize(n_);
  for (idx k = 0; k < n_; k++) row_perm_[k] = analysis_row_perm_[row_order[k]];
  nnz_lower_ = (off)nodes_->lower_row.size() + n_;
  nnz_upper_ = (off)nodes_->upper_row.size() + n_;
  flops_ = info.flops;
  n_off_diagonal_ = info.n_off_diagonal;
  decide_division(info.max_pivot);
  return info;
}

// Products with reciprocals of pivots are faster than quotients, and as good where L and U have rounding errors anyway.
// U of a matrix that is triangular in some order has none: quotients are exact where x has few digits, and a rounding
// error of x may grow in the unknowns that follow until it dominates. A reciprocal below the normal numbers has lost
// digits itself.
template <class T> void ColumnLU<T>::decide_division(double max_pivot) {
  divides_ = nnz_lower_ == n_ || max_pivot > largest_with_reciprocal<T>;
}

template <class T> off ColumnLU<T>::bytes() const {
  const auto size = [](const auto&... v) { return (off(v.size() * sizeof(v[0])) + ... + 0); };
  off bytes = size(block_ptr_, analysis_row_perm_, analysis_row_scale_, pattern_.ptr, pattern_.first, pattern_.row,
                   row_perm_, col_perm_, scale_row_, scale_col_);
  if (!nodes_) return bytes;
  const ColumnNodes<T>& f = *nodes_;
  bytes += size(f.node, f.lower_row, f.upper_row, f.segment, f.lower, f.upper, f.pivot, f.inverse_pivot, f.a_row,
                f.phase, f.schedule.ptr, f.schedule.nodes, f.done, f.claimed);
  for (const ZeroedWork<T>& work : f.work) bytes += work.size() * (off)sizeof(T);
  return wide_ ? bytes + wide_->bytes() : bytes;
}

std::shared_ptr<ColumnNumeric> make_column_lu(Dtype dtype, const Symbolic& symbolic, PatternView A) {
  return with_scalar(
      dtype, [&]<class T>(T) -> std::shared_ptr<ColumnNumeric> { return std::make_shared<ColumnLU<T>>(symbolic, A); });
}

template class ColumnLU<float>;
template class ColumnLU<double>;
template class ColumnLU<std::complex<float>>;
template class ColumnLU<std::complex<double>>;

}  // namespace gs
