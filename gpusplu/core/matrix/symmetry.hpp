// Degree of symmetry of a matrix, and indications of positive definiteness.
#pragma once
#include <cstdint>
#include <vector>

#include "base/types.hpp"

namespace gs {

struct SymmetryTraits {
  double pattern_symmetry = 1;      // fraction of the off-diagonal entries with a stored transpose
  double symmetric_error = 0;       // largest |a_ij - a_ji| over the largest |a_ij|; entries not stored count as zero
  double hermitian_error = 0;       // largest |a_ij - conj(a_ji)| over the largest |a_ij|
  bool positive_diagonal = true;    // every diagonal entry is real and positive (entries not stored are not)
  bool diagonally_dominant = true;  // |a_jj| >= sum of |a_ij| over i != j, in every column
};

// A is canonical. Cost: one pass over A plus one cursor per column.
template <class T> SymmetryTraits symmetry_traits(PatternView A, const T* values);

// How one triangle of a matrix determines the other. A real matrix has one kind of symmetry: the first.
enum class Symmetry { none, hermitian, complex_symmetric };

// Positions of the entries (i, j) and (j, i) of a canonical pattern. Cost: a pass over A up to an entry without
// counterpart.
struct Mirror {
  explicit Mirror(PatternView A);
  off bytes() const { return (off)sizeof(std::uint32_t) * (off)(above.size() + below.size() + diagonal.size()); }

  bool whole = false;  // the pattern is symmetric; otherwise the rest is invalid
  std::vector<std::uint32_t> above, below, diagonal;
};

// Compares every pair of entries relative to its own size, up to the last few bits, so that replacing one by the other
// changes the matrix no more than rounding does. Cost: a pass over the values; without a mirror as much as to make one,
// but only up to the first pair that differs.
template <class T> Symmetry symmetry_of(const Mirror& mirror, const T* values);
template <class T> Symmetry symmetry_of(PatternView A, const T* values);

}  // namespace gs
