// How symmetric, and how likely positive definite, a matrix is.
#pragma once
#include <cstdint>
#include <vector>

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

// What one triangle of a matrix says of the other. Of real matrices there is one symmetry, the first.
enum class Symmetry { none, hermitian, complex_symmetric };

// Places of the entries (i, j) and (j, i) of a canonical pattern. Cost: a pass over A up to an entry that has no other.
struct Mirror {
  explicit Mirror(PatternView A);
  off bytes() const { return (off)sizeof(std::uint32_t) * (off)(above.size() + below.size() + diagonal.size()); }

  bool whole = false;  // the pattern is symmetric; else the rest means nothing
  std::vector<std::uint32_t> above, below, diagonal;
};

// By every pair of entries beside its own size, up to the last few bits, so that taking one for the other is what
// rounding does to any matrix. Cost: a pass over the values; without a mirror as much as to make one, but only up to
// the first pair that differs.
template <class T> Symmetry symmetry_of(const Mirror& mirror, const T* values);
template <class T> Symmetry symmetry_of(PatternView A, const T* values);

}  // namespace gs
