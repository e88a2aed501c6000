// The result of a numerical factorization by any engine.
#pragma once
#include <algorithm>

#include "base/types.hpp"
#include "certify/accuracy_policy.hpp"

namespace gs {

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

}  // namespace gs
