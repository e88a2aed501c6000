// The result of a numerical factorization by any engine.
#pragma once
#include "base/types.hpp"

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

}  // namespace gs
