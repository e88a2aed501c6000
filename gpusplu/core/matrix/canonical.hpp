// Arrays in any supported form -> canonical compressed columns, and the map from the caller's values to canonical ones.
#pragma once
#include <string>
#include <vector>

#include "base/types.hpp"

namespace gs {

// values_canonical[k] = sum over p in source_ptr[k] .. source_ptr[k+1]-1 of the caller's values[source[p]].
// source_ptr is empty when every entry has one source (then p = k), source as well when the caller's arrays were
// canonical compressed columns already (identity). A negative source ~position means the conjugate of that value:
// an entry mirrored from the other triangle.
struct Canonical {
  Pattern pattern;
  std::vector<off> source, source_ptr;
  off nvalues = 0;  // number of the caller's values
  bool identity = false;
};

// Compressed columns or rows of an n x n matrix, indices in any order, duplicates allowed; `available` is the length of
// `ind`. I is a 32- or 64-bit integer. Throws std::invalid_argument, naming the culprit, for pointers that do not
// ascend from 0 or indices outside 0 .. n-1.
// Cost: one pass that checks and copies when the input is canonical columns; otherwise one bucket sort for rows, two
// for unsorted columns. Duplicates are summed in the caller's order.
template <class I> Canonical canonical_from_columns(idx n, const I* ptr, const I* ind, off available);
template <class I> Canonical canonical_from_rows(idx n, const I* ptr, const I* ind, off available);

// Coordinates; two bucket sorts.
template <class I> Canonical canonical_from_coordinates(idx n, const I* row, const I* col, off nnz);

// The arrays of a matrix in one of these formats: compressed columns, compressed rows, or coordinates.
enum class Format { columns, rows, coordinates };
template <class I> Canonical canonical_of(Format format, idx n, const I* first, const I* second, off count) {
  if (format == Format::columns) return canonical_from_columns(n, first, second, count);
  if (format == Format::rows) return canonical_from_rows(n, first, second, count);
  return canonical_from_coordinates(n, first, second, count);
}

enum class Triangle { full, lower, upper };

// The triangle that holds all entries; `full` when neither does, or when both do (a diagonal matrix).
Triangle stored_triangle(PatternView A);

// The Hermitian or symmetric matrix with one triangle `given`.
Canonical mirror_triangle(const Canonical& given, Triangle triangle, bool hermitian = true);

// ---- Checks of unpickled arrays: every property that the core later relies on. They throw std::invalid_argument

// Whether begin[0] .. begin[n] ascend from 0 to `end`; strictly, if no range between them may be empty.
template <class I> bool ascends(const std::vector<I>& begin, off n, off end, bool strictly = false) {
  if ((off)begin.size() != n + 1 || begin[0] != 0 || (off)begin[n] != end) return false;
  bool ascending = true;
  for (off k = 0; k < n; k++) ascending &= strictly ? begin[k] < begin[k + 1] : begin[k] <= begin[k + 1];
  return ascending;
}

// Cost: O(entries).
void validate(const Canonical& canonical);

}  // namespace gs
