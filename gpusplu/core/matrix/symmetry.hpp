// How symmetric, and how likely positive definite, a matrix is.
#pragma once
#include "base/types.hpp"

namespace gs {

struct SymmetryTraits {
  double pattern_symmetry = 1;      // fraction of the off-diagonal entries whose transpose is stored too
  double symmetric_error = 0;       // largest |a_ij - a_ji| over the largest |a_ij|; entries not stored count as zero
  double hermitian_error = 0;       // largest |a_ij - conj(a_ji)| over the largest |a_ij|
  bool positive_diagonal = true;    // every diagonal entry is real and positive (entries not stored are not)
  bool diagonally_dominant = true;  // |a_jj| >= sum of |a_ij| over i != j, in every column
};

// A is canonical. Cost: one pass over A plus one cursor per column.
template <class T> SymmetryTraits symmetry_traits(PatternView A, const T* values);

}  // namespace gs
