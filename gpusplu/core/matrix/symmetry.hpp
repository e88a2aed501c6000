// Degree of symmetry of a matrix, and indications of positive definiteness.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/parallel.hpp"
#include "base/raw_vector.hpp"
#include "base/types.hpp"
#include "matrix/canonical.hpp"

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

// Pairs of canonical entries, (i, j) above the diagonal and (j, i), that must be conjugates of each other (hermitian),
// or equal. If one triangle was given, the other is built from it, so only the diagonal remains, which must be real.
//
// Cost: a walk through the columns.
struct SymmetricPairs {
  // `complex`: the values are complex; a real diagonal is no pair.
  SymmetricPairs(const Canonical& canonical, bool hermitian, bool complex);
  // All pairs of a pattern, with the diagonal, an entry with itself, where `diagonal`.
  SymmetricPairs(PatternView A, bool diagonal) : hermitian(false) { list(A, true, diagonal); }

  static constexpr std::uint32_t none = 0xffffffff;  // in place of the second: the first must be zero
  off bytes() const { return (off)sizeof(std::uint32_t) * (off)(first.size() + second.size()); }

  const bool hermitian;
  bool listed = true;  // false: too many entries for 32-bit numbers
  std::vector<std::uint32_t> first, second;

 private:
  void list(PatternView A, bool off_diagonal, bool diagonal);
};

// Whether new values of a pattern, with both triangles, form a Hermitian or symmetric matrix, which factorizations that
// read one triangle would not notice: whether the largest difference of two such entries is at most gpu::SYMMETRY_UNITS
// units of the precision, relative to the largest entry of the matrix by modulus: rounding when matrices are assembled.
// Equivalent to `symmetry_traits` with that bound. `values` are canonical and finite; `largest_part` is that of
// matrix/values.hpp.
//
// Cost: one pass over the pairs; another over all values if the largest difference is close to the bound.
template <class T> bool are_symmetric(const SymmetricPairs& pairs, PatternView A, const T* values, double largest_part);

// The same without a list of pairs.
template <class T> bool are_symmetric(PatternView A, const T* values, bool hermitian);

// Compares every pair of entries relative to its own size, up to the last few bits, so that replacing one by the other
// changes the matrix no more than rounding does. `pairs`: all, for complex values with the diagonal. Cost: a pass over
// the values; without pairs as much as to make them, but only up to the first pair that differs.
template <class T> Symmetry symmetry_of(const SymmetricPairs& pairs, const T* values);
template <class T> Symmetry symmetry_of(PatternView A, const T* values);

// ---- A canonical matrix together with its transpose in one walk through its columns

// Calls pair(p, q) for the positions of (i, j) above the diagonal and of (j, i), pair(p, p) on the diagonal and pair(p,
// -1) for an entry without counterpart; of those with max(i, j) in `range`. Stops and returns false if pair does.
template <class Pair> bool visit_pairs(PatternView A, Slice<idx> range, Pair&& pair) {
  const auto [begin, end] = range;
  RawVector<off> next(end);  // for each column before the current one: its next entry below the diagonal
  for (idx i = 0; i < begin; i++) {
    const idx *first = A.ind + A.ptr[i], *last = A.ind + A.ptr[i + 1];
    next[i] = (first == last || last[-1] < begin ? last : std::lower_bound(first, last, begin)) - A.ind;
  }
  const auto skip_to = [&](idx i, idx j) {
    for (off& q = next[i]; q < A.ptr[i + 1] && A.ind[q] < j; q++)
      if (!pair(q, off(-1))) return false;
    return true;
  };
  for (idx j = begin; j < end; j++) {
    off p = A.ptr[j];
    for (; p < A.ptr[j + 1] && A.ind[p] < j; p++) {
      const idx i = A.ind[p];
      if (!skip_to(i, j)) return false;
      const bool met = next[i] < A.ptr[i + 1] && A.ind[next[i]] == j;
      if (!pair(p, met ? next[i]++ : -1)) return false;
    }
    if (p < A.ptr[j + 1] && A.ind[p] == j) {
      if (!pair(p, p)) return false;
      p++;
    }
    next[j] = p;
  }
  for (idx i = 0; i < end; i++)
    if (!skip_to(i, end)) return false;
  return true;
}

template <class Pair> bool visit_pairs(PatternView A, Pair&& pair) { return visit_pairs(A, {0, A.n}, pair); }

}  // namespace gs
