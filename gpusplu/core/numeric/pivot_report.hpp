// Pivot quality of a factorization, for the accuracy policy.
#pragma once
#include <algorithm>

#include "certify/accuracy_policy.hpp"
#include "numeric/factor_info.hpp"

namespace gs {

// `restricted_pivoting`: the pivot search covered only a part of each column.
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
