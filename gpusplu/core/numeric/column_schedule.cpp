#include "numeric/column_schedule.hpp"

#include <algorithm>
#include <numeric>

#include "analysis/elimination_tree.hpp"
#include "base/operation.hpp"
#include "base/scalars.hpp"

namespace gs {
namespace {

// Approximate cycles of one node: fixed, per entry of A, per segment, per multiply-add (vectors of `width`), per row of
// L.
template <class T> double node_cost(const ColumnNodes<T>& f, const RawVector<off>& a_ptr, idx s) {
  const idx first = f.node[s].first, width = f.width(s);
  double cost = 50 + 3.0 * (a_ptr[first + width] - a_ptr[first]) + 4.0 * f.node[s].n_lower * width;
  for (off q = f.node[s].segment; q < f.node[s + 1].segment; q++) {
    const ColumnSegment& segment = f.segment[q];
    const double count = f.node[segment.source + 1].first - segment.first_row;
    cost += 10 + (1 + count) * f.node[segment.source].n_lower;
  }
  return cost;
}

// Every source of a node becomes one of its descendants.
template <class T> std::vector<idx> elimination_tree(const ColumnNodes<T>& f) {
  GrowingTree tree(f.n_nodes());
  Pace pace;
  for (idx s = 0; s < f.n_nodes(); s++, pace.go_on(1 + f.node[s].segment - f.node[s - 1].segment))
    for (off q = f.node[s].segment; q < f.node[s + 1].segment; q++) tree.add_entry(s, f.segment[q].source);
  return std::move(tree.parent);
}

// The longest chain of dependent nodes among those with subtrees larger than a bin.
idx longest_chain(const std::vector<idx>& parent, const std::vector<double>& subtree, double bin_size) {
  std::vector<idx> chain(parent.size());
  idx longest = 0;
  for (std::size_t s = 0; s < parent.size(); s++) {
    if (subtree[s] <= bin_size) continue;
    longest = std::max(longest, ++chain[s]);
    if (parent[s] >= 0) chain[parent[s]] = std::max(chain[parent[s]], chain[s]);
  }
  return longest;
}

}  // namespace

template <class T> ColumnSchedule schedule_nodes(const ColumnNodes<T>& f, const RawVector<off>& a_ptr, int n_threads) {
  constexpr double bins_per_thread = 8, slack = 1.2;
  constexpr double long_chain = 0.2;  // of the nodes
  const idx n = f.n_nodes();
  ColumnSchedule out;
  out.n_threads = n_threads;
  const std::vector<idx> parent = elimination_tree(f);
  std::vector<double> subtree(n);
  Pace pace;
  for (idx s = 0; s < n; s++) {
    out.work += subtree[s] = node_cost(f, a_ptr, s);
    pace.go_on(1 + f.node[s + 1].segment - f.node[s].segment);
  }
  for (idx s = 0; s < n; s++)
    if (parent[s] >= 0) subtree[parent[s]] += subtree[s];

  // One thread: one bin with all nodes in ascending order. Nodes with a subtree larger than a bin form the pipeline;
  // the subtrees below them fill bins in ascending order. Where the pipeline would be a chain, as for long lines, one
  // bin per thread may make it short.
  double bin_size = n_threads == 1 ? out.work : out.work / (bins_per_thread * n_threads);
  const auto is_chain = [&](double size) { return longest_chain(parent, subtree, size) > long_chain * n; };
  out.chained = n_threads > 1 && is_chain(bin_size);
  if (const double share = slack * out.work / n_threads; out.chained && !is_chain(share)) {
    bin_size = share;
    out.chained = false;
  }
  constexpr idx pipeline = -1;
  std::vector<idx> bin(n, pipeline);
  double filled = 0;
  idx open = 0;
  for (idx s = 0; s < n; s++) {
    const bool is_root = subtree[s] <= bin_size && (parent[s] < 0 || subtree[parent[s]] > bin_size);
    if (!is_root) continue;
    if (filled > 0 && filled + subtree[s] > bin_size) open++, filled = 0;
    bin[s] = open;
    filled += subtree[s];
  }
  for (idx s = n - 1; s >= 0; s--)
    if (bin[s] == pipeline && subtree[s] <= bin_size) bin[s] = bin[parent[s]];
  out.n_subtrees = filled > 0 ? open + 1 : 0;

  out.ptr.assign(out.n_subtrees + 1, 0);
  for (idx s = 0; s < n; s++)
    if (bin[s] != pipeline) out.ptr[bin[s] + 1]++;
  std::partial_sum(out.ptr.begin(), out.ptr.end(), out.ptr.begin());
  out.nodes.resize(n);
  std::vector<off> place(out.ptr.begin(), out.ptr.end());
  off end = out.ptr.back();
  for (idx s = 0; s < n; s++) {
    if (bin[s] != pipeline) {
      out.nodes[place[bin[s]]++] = s;
    } else {
      out.nodes[end++] = s;
      out.ptr.push_back(end);
    }
  }
  return out;
}

#define GS_INSTANTIATE(T) template ColumnSchedule schedule_nodes<T>(const ColumnNodes<T>&, const RawVector<off>&, int);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
