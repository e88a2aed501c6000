// Column LU: left-looking sparse LU with threshold partial pivoting, then refactorization on the fixed pattern.
//
// factor() is Gilbert & Peierls, "Sparse partial pivoting in time proportional to arithmetic operations", SIAM J. Sci.
// Stat. Comput. 9 (1988), with the symmetric pruning of Eisenstat & Liu (1992) and the diagonal preference and block
// triangular form of KLU (Davis & Palamadai Natarajan, ACM TOMS 37 (2010), Algorithm 907). refactor() keeps pivots and
// pattern and runs a program compiled from them (column_nodes.hpp).
//
// Invariant: with s the scaling and P, Q the permutations of the Symbolic refined by the pivoting inside each diagonal
// block, B = (Dr A Dc)[row_perm][:, col_perm] is block upper triangular and each diagonal block is L_bb U_bb.
#pragma once
#include <memory>
#include <vector>

#include "base/raw_vector.hpp"
#include "base/reusable.hpp"
#include "numeric/numeric.hpp"

namespace gs {

template <class T> struct ColumnNodes;  // storage of the factor and the refactorization program: column_nodes.hpp
template <class T> class WideColumns;   // the factor in numbers with unlimited exponents: column_wide.hpp

// The permuted pattern of A that both factorizations read: column k of B is column col_perm[k] of A, entries ptr[k] ..
// ptr[k+1]-1 with B's row numbers (before pivoting); their values start at first[k] in A's order.
struct PermutedPattern {
  RawVector<off> ptr, first;
  RawVector<idx> row;
  off lower = 0;  // entries of L below the diagonal that the analysis expects
};

template <class T> class ColumnLU : public ColumnNumeric {
 public:
  ColumnLU(const Symbolic& symbolic, PatternView A);
  ~ColumnLU() override;
  ColumnLU(ColumnLU&&) noexcept;

  FactorInfo factor(const void* values, const PivotOptions& options) override;
  FactorInfo factor_wide(const void* values, const PivotOptions& options) override;
  FactorInfo refactor(const void* values) override;
  bool is_wide() const override { return wide_ != nullptr; }
  bool factored() const override { return nodes_ != nullptr; }

  void solve(Trans trans, idx nrhs, const void* b, void* x) const override;
  // `again` is not used here. Not for wide numbers.
  void inverse_on_pattern(PatternView P, void* inverse, bool again) const override;
  std::vector<char> has_places(PatternView P) const override;

  idx n() const { return n_; }
  std::vector<idx> row_perm() const override { return row_perm_; }
  std::vector<idx> col_perm() const override { return col_perm_; }
  off nnz_lower() const override { return nnz_lower_; }  // unit diagonal included, as SciPy counts
  off nnz_upper() const override { return nnz_upper_; }
  off bytes() const override;
  AnyMatrix lower() const override;
  AnyMatrix upper() const override;
  Values diagonal() const override;
  Values below_diagonal() const override { return std::vector<T>(n_); }

 private:
  FactorInfo describe(FactorInfo info, const std::vector<idx>& row_order);
  void decide_division(double max_pivot);
  double row_scale(idx k) const { return scale_row_.empty() ? 1.0 : scale_row_[k]; }
  double col_scale(idx k) const { return scale_col_.empty() ? 1.0 : scale_col_[k]; }

  idx n_ = 0;
  std::vector<idx> block_ptr_;
  std::vector<idx> analysis_row_perm_;
  std::vector<double> analysis_row_scale_;
  PermutedPattern pattern_;
  std::vector<idx> row_perm_, col_perm_;
  std::vector<real_t<T>> scale_row_, scale_col_;  // by rows and columns of B, pivoting included; empty: all ones
  std::unique_ptr<ColumnNodes<T>> nodes_;
  std::unique_ptr<WideColumns<T>> wide_;    // if present, nodes_ holds its rounded numbers
  mutable Reusable<RawVector<T>> scratch_;  // of the last solve, for the next one
  off nnz_lower_ = 0, nnz_upper_ = 0;
  double flops_ = 0, bound_ = 0;
  idx n_off_diagonal_ = 0;
  bool divides_ = false;  // solves divide by pivots
};

}  // namespace gs
