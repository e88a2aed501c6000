// Whether new values of a pattern, with both triangles, form a Hermitian or symmetric matrix: factorizations that read
// one triangle would not notice.
#pragma once
#include <cstdint>
#include <vector>

#include "matrix/canonical.hpp"

namespace gs {

// Pairs of canonical entries that must be conjugates of each other (hermitian), or equal. If one triangle was given,
// the other is built from it, so only the diagonal remains, which must be real.
//
// Cost: a walk through the columns; for an unsymmetric pattern a search for each entry.
struct SymmetricPairs {
  // `complex`: the values are complex; a real diagonal is no pair.
  SymmetricPairs(const Canonical& canonical, bool hermitian, bool complex);

  static constexpr std::uint32_t none = 0xffffffff;  // in place of the second: the first must be zero
  off bytes() const { return (off)sizeof(std::uint32_t) * (off)(first.size() + second.size()); }

  const bool hermitian;
  bool listed = true;  // false: too many entries for 32-bit numbers
  std::vector<std::uint32_t> first, second;
};

// Whether the largest difference of two such entries is at most gpu::SYMMETRY_UNITS units of the precision, relative to
// the largest entry of the matrix by modulus: rounding when matrices are assembled. Equivalent to `symmetry_traits`
// with that bound. `values` are canonical and finite; `largest_part` is that of matrix/values.hpp.
//
// Cost: one pass over the pairs; another over all values if the largest difference is close to the bound.
template <class T> bool are_symmetric(const SymmetricPairs& pairs, PatternView A, const T* values, double largest_part);

// The same without a list of pairs.
template <class T> bool are_symmetric(PatternView A, const T* values, bool hermitian);

}  // namespace gs
