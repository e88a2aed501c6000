#include "plan/columns/corner_terms.hpp"

#include <algorithm>
#include <numeric>

namespace gs::gpu {
namespace {

// Calls visit(position of U(j, k), place of L(i, j), position of (i, k)) for all terms of column k, j ascending.
template <class Visit> void for_terms(const ColumnPattern& a, idx k, idx p, std::vector<idx>& position, Visit&& visit) {
  const off begin = a.col_ptr[k];
  for (off e = begin; e < a.col_ptr[k + 1]; e++) position[a.row[e]] = (idx)(e - begin);
  for (off e = begin; e < a.col_ptr[k + 1] && a.row[e] < p; e++)
    for (off q = a.diag[a.row[e]] + 1; q < a.col_ptr[a.row[e] + 1]; q++) visit((idx)(e - begin), q, position[a.row[q]]);
}

void order_by_depth(const ColumnPattern& a, idx k, idx p, const std::vector<idx>& depth, CornerTerms& out) {
  const off begin = a.col_ptr[k];
  idx uppers = 0, levels = 0;
  while (begin + uppers < a.col_ptr[k + 1] && a.row[begin + uppers] < p) levels = std::max(levels, depth[uppers++] + 1);
  const size_t first = out.order.size(), first_level = out.level.size();
  out.order.resize(first + uppers);
  out.level.resize(first_level + levels, 0);
  std::int32_t* ends = out.level.data() + first_level;
  for (idx t = 0; t < uppers; t++) ends[depth[t]]++;
  std::partial_sum(ends, ends + levels, ends);
  std::vector<idx> next(levels, 0);
  for (idx l = 1; l < levels; l++) next[l] = ends[l - 1];
  for (idx t = 0; t < uppers; t++) out.order[first + next[depth[t]]++] = t;
  out.order_ptr.push_back((off)out.order.size());
  out.level_ptr.push_back((off)out.level.size());
}

}  // namespace

off count_corner_terms(const ColumnPattern& a, idx p) {
  off count = 0;
  for (idx k = p; k < a.n; k++)
    for (off e = a.col_ptr[k]; e < a.col_ptr[k + 1] && a.row[e] < p; e++)
      count += a.col_ptr[a.row[e] + 1] - a.diag[a.row[e]] - 1;
  return count;
}

CornerTerms make_corner_terms(const ColumnPattern& a, idx p) {
  CornerTerms out;
  const off first = a.col_ptr[p];
  out.term_ptr.assign(a.col_ptr[a.n] - first + 1, 0);
  out.order_ptr = {0};
  out.level_ptr = {0};
  std::vector<idx> position(a.n), depth;
  for (idx k = p; k < a.n; k++) {
    off* count = out.term_ptr.data() + (a.col_ptr[k] - first) + 1;
    depth.assign(a.col_ptr[k + 1] - a.col_ptr[k], 0);
    for_terms(a, k, p, position, [&](idx from, off, idx to) {
      count[to]++;
      depth[to] = std::max(depth[to], depth[from] + 1);
    });
    order_by_depth(a, k, p, depth, out);
  }
  std::partial_sum(out.term_ptr.begin(), out.term_ptr.end(), out.term_ptr.begin());
  out.place.resize(out.term_ptr.back());
  out.position.resize(out.term_ptr.back());
  std::vector<off> next;
  for (idx k = p; k < a.n; k++) {
    const off* ptr = out.term_ptr.data() + (a.col_ptr[k] - first);
    next.assign(ptr, ptr + (a.col_ptr[k + 1] - a.col_ptr[k]));
    for_terms(a, k, p, position, [&](idx from, off q, idx to) {
      const off term = next[to]++;
      out.place[term] = (std::int32_t)q;
      out.position[term] = from;
    });
  }
  return out;
}

}  // namespace gs::gpu
