// Whether new values of a pattern, both triangles of them, are of a Hermitian or a symmetric matrix: factorizations
// that read one triangle would not notice.
#pragma once
#include <cstdint>
#include <vector>

#include "matrix/canonical.hpp"

namespace gs {

// Which canonical entries have to be conjugates of each other (hermitian), or equal. Where one triangle was given the
// other one is made of it, so that only the diagonal is left, which has to be real.
//
// Cost: a walk through the columns; of an unsymmetric pattern a search for each entry.
struct SymmetricPairs {
  // `complex`: of complex values; a real diagonal is no pair.
  SymmetricPairs(const Canonical& canonical, bool hermitian, bool complex);

  static constexpr std::uint32_t none = 0xffffffff;  // in place of the second: the first has to be zero
  off bytes() const { return (off)sizeof(std::uint32_t) * (off)(first.size() + second.size()); }

  const bool hermitian;
  bool listed = true;  // false: there are too many entries for the numbers
  std::vector<std::uint32_t> first, second;
};

// Whether the largest difference of two such entries is at most gpu::SYMMETRY_UNITS units of the precision, beside the
// largest entry of the matrix by modulus: rounding when matrices are assembled. This is `symmetry_traits` with that
// bound. `values` are canonical and finite; `largest_part` is what matrix/values.hpp says of them.
//
// Cost: one pass over the pairs; another over all values where pairs differ by so much that it is near.
template <class T> bool are_symmetric(const SymmetricPairs& pairs, PatternView A, const T* values, double largest_part);

// The same without a list of pairs.
template <class T> bool are_symmetric(PatternView A, const T* values, bool hermitian);

}  // namespace gs
