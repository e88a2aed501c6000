// Diagonal entries are matched first: a matrix that has them all costs O(nnz) and keeps its diagonal.
#include "transversal.hpp"

#include <algorithm>

#include "analysis/augmenting_paths.hpp"

namespace gs {
namespace {

struct StoredEntries {
  PatternView A;
  std::vector<idx> rows, cols;  // row of a column, column of a row

  explicit StoredEntries(PatternView pattern) : A(pattern), rows(A.n, -1), cols(A.n, -1) {}
  off begin(idx j) const { return A.ptr[j]; }
  off end(idx j) const { return A.ptr[j + 1]; }
  idx row(off p) const { return A.ind[p]; }
  bool admissible(off, idx) const { return true; }
  idx col_of_row(idx i) const { return cols[i]; }
  void match(idx i, idx j) {
    rows[j] = i;
    cols[i] = j;
  }
};

}  // namespace

std::vector<idx> maximum_transversal(PatternView A) {
  StoredEntries entries(A);
  std::vector<idx> unmatched;
  for (idx j = 0; j < A.n; ++j) {
    const idx* const end = A.ind + A.ptr[j + 1];
    if (std::find(A.ind + A.ptr[j], end, j) != end) entries.match(j, j);
    else unmatched.push_back(j);
  }
  AugmentingPaths(entries, A.n).run(unmatched);
  return std::move(entries.rows);
}

}  // namespace gs
