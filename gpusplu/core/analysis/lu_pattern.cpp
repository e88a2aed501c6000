#include "analysis/lu_pattern.hpp"

#include <algorithm>

namespace gs {
namespace {

// The finished columns of L, as a graph to search: column k leads to its rows below k, of which the first `pruned[k]` -
// ptr[k] suffice.
struct Search {
  std::vector<off> pruned;
  std::vector<idx> mark;          // mark[i] == j: row i was reached in step j
  std::vector<idx> stack;         // columns on the path from the start
  std::vector<off> next;          // next[k]: where the search of column k continues
  std::vector<idx> lower, upper;  // rows reached, below and above the diagonal

  explicit Search(idx n) : pruned(n), mark(n, -1), stack(n), next(n) {}

  // Reaches everything from row `start` in step j.
  void reach(const Pattern& L, idx start, idx j) {
    if (mark[start] == j) return;
    mark[start] = j;
    if (start > j) return lower.push_back(start);
    if (start == j) return;
    idx depth = 0;
    stack[0] = start;
    next[start] = L.ptr[start] + 1;
    upper.push_back(start);
    while (depth >= 0) {
      const idx k = stack[depth];
      if (next[k] == pruned[k]) {
        depth--;
        continue;
      }
      const idx row = L.ind[next[k]++];
      if (mark[row] == j) continue;
      mark[row] = j;
      if (row > j) {
        lower.push_back(row);
      } else if (row < j) {
        upper.push_back(row);
        next[row] = L.ptr[row] + 1;
        stack[++depth] = row;
      }
    }
  }
};

void append_column(Pattern& out, const std::vector<idx>& rows) {
  out.ind.insert(out.ind.end(), rows.begin(), rows.end());
  out.ptr.push_back((off)out.ind.size());
}

}  // namespace

LuPattern lu_pattern(PatternView A, const idx* inverse_row_perm, const idx* col_perm) {
  const idx n = A.n;
  LuPattern out{{n, {0}, {}}, {n, {0}, {}}, 0};
  Search search(n);
  for (idx j = 0; j < n; j++) {
    search.lower.assign(1, j);
    search.upper.clear();
    for (off p = A.ptr[col_perm[j]]; p < A.ptr[col_perm[j] + 1]; p++)
      search.reach(out.L, inverse_row_perm[A.ind[p]], j);
    std::sort(search.lower.begin() + 1, search.lower.end());
    std::sort(search.upper.begin(), search.upper.end());
    for (const idx k : search.upper) {
      out.flops += 2.0 * (double)(out.L.ptr[k + 1] - out.L.ptr[k] - 1);
      // U(k, j) is an entry. When L(j, k) is one too, all that column k reaches beyond row j is reached through j.
      if (search.pruned[k] < out.L.ptr[k + 1]) continue;
      const idx *first = out.L.ind.data() + out.L.ptr[k], *last = out.L.ind.data() + out.L.ptr[k + 1];
      const idx* found = std::lower_bound(first, last, j);
      if (found != last && *found == j) search.pruned[k] = found + 1 - out.L.ind.data();
    }
    out.flops += (double)search.lower.size() - 1;
    search.upper.push_back(j);
    append_column(out.L, search.lower);
    append_column(out.U, search.upper);
    search.pruned[j] = out.L.ptr[j + 1];
  }
  return out;
}

}  // namespace gs
