// A factor of one set of values for numbers of a type known at run time. Factor (numeric/factor.hpp) certifies its
// solutions. There are two methods, which choose pivots differently: ColumnLU and FrontFactor. Arrays of numbers are
// `void*`; their type is that of the factor.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/symbolic.hpp"
#include "base/types.hpp"
#include "certify/accuracy_policy.hpp"
#include "simd/dense_kernels.hpp"

namespace gs {

// The result of a numerical factorization by any engine.
struct FactorInfo {
  enum Status { ok, singular, bad_growth, not_finite, not_positive_definite };
  Status status = ok;
  idx column = -1;       // of the failure, in A's numbering (not positive definite: with pivot min_pivot)
  double min_pivot = 0;  // smallest and largest |U_kk| of the scaled matrix
  double max_pivot = 0;
  double max_entry = 0;       // max |scaled A|
  double pivot_growth = 0;    // max |U| / max |scaled A|
  double max_multiplier = 0;  // max |L|
  idx n_perturbed = 0;        // pivots replaced by a larger one
  idx n_tiny = 0;             // of these, small enough to indicate a singular matrix
  idx n_off_diagonal = 0;     // pivots other than the diagonal entry that the analysis proposed
  bool flushed = false;       // results below the normal numbers became zero
  double flops = 0;           // multiply-adds counted as 2 [flop]
};

// The quality of its pivots, for the accuracy policy. `restricted_pivoting`: the pivot search covered only a part of
// each column.
inline PivotReport report_of(const FactorInfo& info, bool cholesky, bool restricted_pivoting, double error_bound) {
  PivotReport pivots;
  pivots.failed = info.status != FactorInfo::ok;
  pivots.error_bound = error_bound;
  if (cholesky) return pivots;
  pivots.restricted_pivoting = restricted_pivoting;
  pivots.n_perturbed = info.n_perturbed, pivots.n_tiny = info.n_tiny;
  pivots.max_multiplier = info.max_multiplier;
  pivots.growth = std::max(1.0, info.max_multiplier) * info.pivot_growth * std::max(1.0, info.max_entry);
  return pivots;
}

class Numeric {
 public:
  virtual ~Numeric() = default;

  // op(A) x = b for nrhs columns of n entries in A's numbering. Thread-safe; b and x must not overlap.
  virtual void solve(Trans trans, idx nrhs, const void* b, void* x) const = 0;

  // Entry k, (i, j) in the pattern P, becomes (A^-1)_ji; `inverse` has one for each. P has entries of A and of the
  // factors only; with `again`, P must be A's pattern.
  virtual void inverse_on_pattern(PatternView P, void* inverse, bool again) const = 0;
  // For each entry of P: whether `inverse_on_pattern` accepts it in addition to A's entries.
  virtual std::vector<char> has_places(PatternView P) const = 0;

  // A[row_perm][:, col_perm] = L U, L with unit diagonal, or A[row_perm][:, row_perm] = L L^H, or L D L^H (L D L^T of
  // complex symmetric A), L with unit diagonal; no scaling in L, U and D. Compressed columns with sorted rows, without
  // exact zeros. Gather permutations, with the interchanges of the last factorization.
  virtual AnyMatrix lower() const = 0;
  virtual AnyMatrix upper() const = 0;
  virtual std::vector<idx> row_perm() const = 0;
  virtual std::vector<idx> col_perm() const = 0;
  virtual Values diagonal() const = 0;        // of U, of D or of the Cholesky L, without scaling
  virtual Values below_diagonal() const = 0;  // of D, n entries without scaling: zero except for pivots of order 2

  virtual off nnz_lower() const = 0;  // stored entries, with the diagonal
  virtual off nnz_upper() const = 0;
  virtual off bytes() const = 0;  // of the factor, including what refactorizations use
};

struct PivotOptions {
  double pivot_threshold = 0.1;  // take the diagonal when |a_kk| >= threshold * max |a_ik|; 1: partial pivoting
  double most_flops = std::numeric_limits<double>::infinity();  // the factorization stops above this, as for overflow
};

// Column LU: numeric/column_lu.cpp.
class ColumnNumeric : public Numeric {
 public:
  // Chooses pivots and pattern. `values`: in A's canonical order. A failure leaves no factor.
  virtual FactorInfo factor(const void* values, const PivotOptions& options) = 0;
  // The same in numbers with unlimited exponents and without the scales: slow, but no intermediate result leaves the
  // range of the type. Extraction rounds L and U to the type, and refactor() refuses.
  virtual FactorInfo factor_wide(const void* values, const PivotOptions& options) = 0;
  // Fixed pivots and pattern of the last successful factor(). Rejects values that are not finite before it changes
  // anything; after any other failure the factor must not be used for solves until a refactor() or factor() succeeds.
  virtual FactorInfo refactor(const void* values) = 0;
  virtual bool factored() const = 0;
  virtual bool is_wide() const = 0;

  // Origin of the numbers: which choice of pivots, and whether it was made for other values.
  struct Origin {
    int choice = -1;
    bool refactored = false;
    bool operator==(const Origin&) const = default;
  };
  const Origin& origin() const { return origin_; }

 protected:
  Origin origin_;
};

// Fronts: numeric/front_factor.hpp.
class FrontNumeric : public Numeric {
 public:
  // Factors the matrix with these canonical values; a refactorization does the same. `rule` applies to LU and LDL^T:
  // bounds are absolute, for the scaled matrix. If the status is not ok, the factor is unusable. `flush`: results below
  // the normal numbers may become zero.
  virtual FactorInfo factor(const void* values, const PivotRule& rule, bool flush = false) = 0;

  // For Cholesky: from the factor of A to that of A + sign C C^H. All pairs of rows in a column of C must be in A's
  // pattern; C.pattern.n counts columns. False if pivots are lost; the factor is then unusable.
  virtual bool update(const AnyMatrix& C, int sign) = 0;
  virtual bool update_pays(const Pattern& C) const = 0;  // compared with a new factorization

  // For LDL^T: columns, in A's numbering, with pivots that the last factor() perturbed.
  virtual const std::vector<idx>& perturbed_columns() const = 0;
  // The number of positive and negative eigenvalues of D.
  virtual std::pair<idx, idx> inertia_of_pivots() const = 0;
};

std::shared_ptr<ColumnNumeric> make_column_lu(Dtype dtype, const Symbolic& symbolic, PatternView A);
// `hermitian`: for LDL^T, else A equals its transpose.
std::shared_ptr<FrontNumeric> make_front_factor(Dtype dtype, std::shared_ptr<const Symbolic> symbolic, PatternView A,
                                                bool hermitian);

// An entry of factors, or of the inverse, of the unscaled matrix from that of the scaled one:
// v * row_scale * col_scale; the product of these powers of two may leave the range of numbers where the result does
// not.
template <class T> inline T unscaled(T v, double row_scale, double col_scale) {
  const double both = row_scale * col_scale;
  return std::isnormal(both) ? scaled(v, both) : scaled(scaled(v, row_scale), col_scale);
}

}  // namespace gs
