// What a numerical factorization reports, whichever engine ran it.
#pragma once
#include "base/types.hpp"

namespace gs {

struct FactorInfo {
  enum Status { ok, singular, bad_growth, not_finite, not_positive_definite };
  Status status = ok;
  idx column = -1;       // where it failed, in A's numbering (not positive definite: with pivot min_pivot)
  double min_pivot = 0;  // smallest and largest |U_kk| of the scaled matrix
  double max_pivot = 0;
  double max_entry = 0;       // max |scaled A|
  double pivot_growth = 0;    // max |U| / max |scaled A|
  double max_multiplier = 0;  // max |L|
  idx n_perturbed = 0;        // pivots replaced by a larger one
  idx n_tiny = 0;             // of these, small enough to mean a singular matrix
  idx n_off_diagonal = 0;     // pivots taken off the diagonal that the analysis proposed
  bool flushed = false;       // results that were too small for normal numbers became zero
  double flops = 0;           // multiply-adds counted as 2 [flop]
};

}  // namespace gs
