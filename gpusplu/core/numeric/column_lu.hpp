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
#include <limits>
#include <memory>
#include <vector>

#include "analysis/symbolic.hpp"
#include "base/raw_vector.hpp"
#include "base/reusable.hpp"
#include "base/types.hpp"
#include "numeric/factor_info.hpp"

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

struct PivotOptions {
  double pivot_threshold = 0.1;  // take the diagonal when |a_kk| >= threshold * max |a_ik|; 1: partial pivoting
  double most_flops = std::numeric_limits<double>::infinity();  // the factorization stops above this, as for overflow
};

template <class T> class ColumnLU {
 public:
  ColumnLU(const Symbolic& symbolic, PatternView A);
  ~ColumnLU();
  ColumnLU(ColumnLU&&) noexcept;
  ColumnLU& operator=(ColumnLU&&) noexcept;

  // Chooses pivots and pattern. `values`: in A's canonical order. A failure leaves no factor.
  FactorInfo factor(const T* values, const PivotOptions& options);

  // The same in numbers with unlimited exponents and without the scales: slow, but no intermediate result leaves the
  // range of the type. Extraction rounds L and U to the type, and refactor() refuses.
  FactorInfo factor_wide(const T* values, const PivotOptions& options);
  bool is_wide() const { return wide_ != nullptr; }

  // Fixed pivots and pattern of the last successful factor(). Rejects values that are not finite before it changes
  // anything; after any other failure the factor must not be used for solves until a refactor() or factor() succeeds.
  FactorInfo refactor(const T* values);

  // op(A) x = b for nrhs columns, in A's own numbering. Thread-safe; b and x must not overlap.
  void solve(Trans trans, idx nrhs, const T* b, off ldb, T* x, off ldx) const;

  // Entry k, (i, j) in the pattern P, becomes (A^-1)_ji; `inverse` has one for each. P has entries of A and of the
  // factors only; `again` is not used here. Not for wide numbers.
  void inverse_on_pattern(PatternView P, T* inverse, bool again) const;
  // For each entry of P: whether `inverse_on_pattern` accepts it in addition to A's entries.
  std::vector<char> has_places(PatternView P) const;

  bool factored() const { return nodes_ != nullptr; }

  // Origin of the numbers: which choice of pivots, and whether it was made for other values.
  struct Origin {
    int choice = -1;
    bool refactored = false;
    bool operator==(const Origin&) const = default;
  };
  const Origin& origin() const { return origin_; }
  idx n() const { return n_; }
  const std::vector<idx>& row_perm() const { return row_perm_; }  // gather, pivoting included
  const std::vector<idx>& col_perm() const { return col_perm_; }
  off nnz_lower() const { return nnz_lower_; }  // unit diagonal included, as SciPy counts
  off nnz_upper() const { return nnz_upper_; }
  off bytes() const;  // of the factor and the data for refactorizations

  // A[row_perm][:, col_perm] = lower() upper() without scaling; lower is unit lower triangular. Sorted rows.
  Matrix<T> lower() const;
  Matrix<T> upper() const;
  std::vector<T> diagonal() const;  // of U

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
  Origin origin_;
};

extern template class ColumnLU<float>;
extern template class ColumnLU<double>;
extern template class ColumnLU<std::complex<float>>;
extern template class ColumnLU<std::complex<double>>;

}  // namespace gs
