#include "analysis/elimination_tree.hpp"

#include <algorithm>
#include <utility>

#include "analysis/graph.hpp"

namespace gs {

namespace {

// What is left to do for a run of vertices once the trees of all runs are known.
struct alignas(64) Run {
  std::vector<std::pair<idx, idx>> edges;  // (row in the run, column), rows ascending
};

}  // namespace

// Threads find the trees of the graphs of runs of vertices. A vertex keeps its parent there unless its subtree has an
// edge to a vertex before the run. The others start again in the sequential rest, by these edges and by those of their
// run's tree, which connects the same vertices through lower ones as the run's own edges do.
std::vector<idx> elimination_tree(PatternView graph, const idx* perm) {
  const idx n = graph.n;
  const std::vector<idx> inverse = inverse_permutation(perm, n);
  const int n_runs = threads_for_random(graph.nnz());
  GrowingTree tree(n);
  std::vector<Run> runs(n_runs);
  share_out(n_runs, n_runs, [&](std::size_t r, int) {
    const auto [begin, end] = slice(n, Team{(int)r, n_runs});
    auto& edges = runs[r].edges;
    Pace pace;
    for (idx k = begin; k < end; k++, pace.go_on(8))
      for (off p = graph.ptr[perm[k]]; p < graph.ptr[perm[k] + 1]; p++) {
        const idx j = inverse[graph.ind[p]];
        if (j >= begin) tree.add_entry(k, j);
        else edges.emplace_back(k, j);
      }
    if (edges.empty()) return;
    std::vector<char> starts_again(end - begin);
    for (const auto& [k, j] : edges) starts_again[k - begin] = 1;
    const std::size_t before = edges.size();
    for (idx j = begin; j < end; j++) {
      if (!starts_again[j - begin]) continue;
      if (const idx k = std::exchange(tree.parent[j], -1); k >= 0) {
        starts_again[k - begin] = 1;
        edges.emplace_back(k, j);
      }
      tree.ancestor[j] = -1;
    }
    const auto by_row = [](const auto& a, const auto& b) { return a.first < b.first; };
    std::sort(edges.begin() + before, edges.end(), by_row);
    std::inplace_merge(edges.begin(), edges.begin() + before, edges.end(), by_row);
  });
  Pace pace;
  for (const Run& run : runs)
    for (const auto& [k, j] : run.edges) pace.go_on(8), tree.add_entry(k, j);
  return std::move(tree.parent);
}

// Once the subtree sizes are known every vertex can be placed from the top down: a vertex ends its subtree, its last
// child's subtree ends just before it, and so on.
std::vector<idx> postorder(const std::vector<idx>& parent) {
  const idx n = (idx)parent.size();
  std::vector<idx> subtree(n, 1), end(n), order(n);  // end[j]: where the next subtree below j, from the right, ends
  for (idx j = 0; j < n; j++)
    if (parent[j] >= 0) subtree[parent[j]] += subtree[j];
  idx roots_end = n - 1;
  for (idx j = n - 1; j >= 0; j--) {
    idx& slot = parent[j] >= 0 ? end[parent[j]] : roots_end;
    order[slot] = j;
    end[j] = slot - 1;
    slot -= subtree[j];
  }
  return order;
}

std::vector<idx> renumber_tree(const std::vector<idx>& parent, const std::vector<idx>& order) {
  const std::vector<idx> place = inverse_permutation(order.data(), (idx)order.size());
  std::vector<idx> out(order.size());
  over_range((off)order.size(), (off)order.size(), [&](off begin, off end) {
    for (off k = begin; k < end; k++) {
      const idx above = parent[order[k]];
      out[k] = above >= 0 ? place[above] : -1;
    }
  });
  return out;
}

idx tree_height(const std::vector<idx>& parent) {
  const idx n = (idx)parent.size();
  std::vector<idx> depth(n);
  idx height = 0;
  for (idx j = n - 1; j >= 0; j--) {
    depth[j] = parent[j] >= 0 ? depth[parent[j]] + 1 : 1;
    height = std::max(height, depth[j]);
  }
  return height;
}

std::vector<idx> subtree_sizes(const std::vector<idx>& parent) {
  std::vector<idx> size(parent.size(), 1);
  for (std::size_t j = 0; j < parent.size(); j++)
    if (parent[j] >= 0) size[parent[j]] += size[j];
  return size;
}

SubtreeCut cut_subtrees(const std::vector<idx>& size, int threads) {
  const idx n = (idx)size.size(), limit = threads > 1 ? std::max<idx>(1, n / (6 * threads)) : n;
  SubtreeCut cut;
  for (idx j = n - 1; j >= 0;) {
    if (size[j] > limit) {
      cut.top.push_back(j--);
      continue;
    }
    // neighbouring small subtrees are left apart: a thread takes the next within nanoseconds
    cut.subtrees.push_back({j - size[j] + 1, j + 1});
    j -= size[j];
  }
  std::reverse(cut.top.begin(), cut.top.end());
  std::reverse(cut.subtrees.begin(), cut.subtrees.end());
  return cut;
}

}  // namespace gs
