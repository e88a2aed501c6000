#include "plan/columns/groups.hpp"

#include <algorithm>
#include <numeric>

#include "analysis/graph.hpp"

namespace gs::gpu {
namespace {

// n: no column needs it.
std::vector<idx> parents(const ColumnPattern& p) {
  std::vector<idx> parent(p.n, p.n);
  for (idx k = 0; k < p.n; k++) {
    for (off e = p.col_ptr[k]; e < p.diag[k]; e++) parent[p.row[e]] = std::min(parent[p.row[e]], k);
    if (p.diag[k] + 1 < p.col_ptr[k + 1]) parent[k] = std::min(p.row[p.diag[k] + 1], p.n);
  }
  return parent;
}

// Cuts 0 .. n into groups; first[g] is the first column of group g.
struct Cutter {
  const ColumnPattern& p;
  const GroupLimits& limits;
  std::vector<idx> parent, begin;  // begin[k]: first column of the subtree of k; -1: it does not lie together
  std::vector<off> weight;         // entries in the subtree
  std::vector<idx> single;         // columns before one that are groups by themselves
  std::vector<idx> first;

  Cutter(const ColumnPattern& pattern, const GroupLimits& limits_)
      : p(pattern), limits(limits_), parent(parents(pattern)), begin(p.n), weight(p.n), single(p.n + 1) {
    for (idx k : limits.single) single[k + 1] = 1;
    std::partial_sum(single.begin(), single.end(), single.begin());
    std::vector<idx> size(p.n, 1);
    std::iota(begin.begin(), begin.end(), 0);
    for (idx k = 0; k < p.n; k++) {
      if (k + 1 - begin[k] != size[k]) begin[k] = -1;
      weight[k] += entries(k, k + 1);
      if (parent[k] == p.n) continue;
      size[parent[k]] += size[k];
      weight[parent[k]] += weight[k];
      idx& b = begin[parent[k]];
      b = begin[k] < 0 ? -p.n : std::min(b, begin[k]);
    }
  }

  off entries(idx from, idx to) const { return p.col_ptr[to] - p.col_ptr[from]; }
  bool is_single(idx k) const { return single[k + 1] > single[k]; }
  bool is_leaf(idx k) const {
    return begin[k] >= 0 && single[begin[k]] == single[k + 1] && entries(begin[k], k + 1) <= limits.leaf &&
           k + 1 - begin[k] <= limits.columns;
  }

  // End of the largest small subtree that begins with column k, of the column itself if its small subtree does not lie
  // together, or k.
  void mark(std::vector<idx>& end) const {
    end.assign(p.n, 0);
    for (idx k = 0; k < p.n; k++) {
      end[k] = std::max(end[k], k);
      if (is_leaf(k)) end[begin[k]] = k + 1;
      else if (begin[k] < 0 && weight[k] <= limits.leaf) end[k] = k + 1;
    }
  }

  void cut() {
    std::vector<idx> end;
    mark(end);
    for (idx k = 0; k < p.n;) {
      first.push_back(k);
      const idx from = k;
      const bool in_leaves = end[k] > k;
      k = in_leaves ? end[k] : k + 1;
      while (k < p.n) {
        const bool leaf = end[k] > k;
        if (leaf != in_leaves || (!leaf && parent[k - 1] != k) || is_single(from) || is_single(k)) break;
        const idx to = leaf ? end[k] : k + 1;
        if (to - from > limits.columns || entries(from, to) > (leaf ? limits.leaf : limits.capacity)) break;
        k = to;
      }
    }
    first.push_back(p.n);
  }
};

std::vector<idx> group_levels(const ColumnPattern& p, const std::vector<idx>& first) {
  const idx groups = (idx)first.size() - 1;
  const std::vector<idx> group_of = part_of_each(first, p.n);
  std::vector<idx> level(groups, 0);
  for (idx g = 0; g < groups; g++) {  // the contributions of lower groups are complete
    for (off e = p.col_ptr[first[g]]; e < p.col_ptr[first[g + 1]]; e++)
      if (p.row[e] < first[g]) level[g] = std::max(level[g], level[group_of[p.row[e]]] + 1);
    for (off e = p.col_ptr[first[g]]; e < p.col_ptr[first[g + 1]]; e++)
      if (p.row[e] >= first[g + 1] && p.row[e] < p.n) {
        idx& later = level[group_of[p.row[e]]];
        later = std::max(later, level[g] + 1);
      }
  }
  return level;
}

}  // namespace

ColumnGroups make_column_groups(const ColumnPattern& p, const GroupLimits& limits) {
  ColumnGroups out;
  if (p.n == 0) return {{}, {0}};
  Cutter cutter(p, limits);
  cutter.cut();
  const std::vector<idx>& first = cutter.first;
  const std::vector<idx> level = group_levels(p, first);
  std::vector<idx> order(first.size() - 1);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](idx a, idx b) {
    if (level[a] != level[b]) return level[a] < level[b];
    const off in_a = cutter.entries(first[a], first[a + 1]), in_b = cutter.entries(first[b], first[b + 1]);
    return in_a != in_b ? in_a > in_b : a < b;
  });
  for (idx g : order) {
    while ((idx)out.level_ptr.size() <= level[g]) out.level_ptr.push_back((idx)out.range.size() / 2);
    out.range.push_back(first[g]);
    out.range.push_back(first[g + 1]);
  }
  out.level_ptr.push_back((idx)order.size());
  return out;
}

std::vector<idx> columns_that_follow(const ColumnPattern& p) {
  std::vector<idx> follows(p.n, 0);
  for (idx k = 1; k < p.n; k++) {
    const idx *before = p.row + p.diag[k - 1] + 1, *before_end = p.row + p.col_ptr[k];
    const idx *own = p.row + p.diag[k] + 1, *own_end = p.row + p.col_ptr[k + 1];
    follows[k] = before != before_end && *before == k && std::equal(before + 1, before_end, own, own_end);
  }
  return follows;
}

std::vector<off> row_diagonals(const ColumnPattern& p, const off* row_ptr) {
  std::vector<off> diagonal(row_ptr, row_ptr + p.n);
  for (idx k = 0; k < p.n; k++)
    for (off e = p.diag[k] + 1; e < p.col_ptr[k + 1]; e++) diagonal[p.row[e]]++;
  return diagonal;
}

}  // namespace gs::gpu
