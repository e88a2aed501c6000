// Visits a canonical matrix together with its transpose in one walk through its columns.
#pragma once
#include <algorithm>

#include "base/parallel.hpp"
#include "base/raw_vector.hpp"
#include "base/types.hpp"

namespace gs {

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
