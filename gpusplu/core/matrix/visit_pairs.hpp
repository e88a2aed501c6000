// Visits a canonical matrix together with its transpose in one walk through its columns.
#pragma once
#include "base/raw_vector.hpp"
#include "base/types.hpp"

namespace gs {

// Calls pair(p, q) for the positions of (i, j) above the diagonal and of (j, i), column by column, and diagonal(p).
// Stops and returns false at an entry above without counterpart below, or if pair returns false. Does not detect an
// entry below without counterpart.
template <class Pair, class Diagonal> bool visit_pairs(PatternView A, Pair&& pair, Diagonal&& diagonal) {
  RawVector<off> next(A.n);  // for each visited column: its next entry below the diagonal
  for (idx j = 0; j < A.n; j++) {
    off p = A.ptr[j];
    for (; p < A.ptr[j + 1] && A.ind[p] < j; p++) {
      off& q = next[A.ind[p]];
      if (q >= A.ptr[A.ind[p] + 1] || A.ind[q] != j || !pair(p, q)) return false;
      q++;
    }
    if (p < A.ptr[j + 1] && A.ind[p] == j) diagonal(p++);
    next[j] = p;
  }
  return true;
}

}  // namespace gs
