#include "analysis/elimination_tree.hpp"

#include <algorithm>
#include <utility>

#include "analysis/graph.hpp"

namespace gs {

namespace {

// A run of vertices, and the tree of its own edges.
struct Run {
  Slice<idx> vertices;
  std::vector<std::pair<idx, idx>> entries_before;  // (row in the run, column before it), rows ascending
};

}  // namespace

// Threads find the trees of the graphs of runs of vertices. The tree of a run stands for the run's own edges: both
// connect the same vertices through lower ones. So the sequential rest has one edge per vertex and the edges between
// runs.
std::vector<idx> elimination_tree(PatternView graph, const idx* perm) {
  const idx n = graph.n;
  const std::vector<idx> inverse = inverse_permutation(perm, n);
  const int n_runs = threads_for_random(graph.nnz());
  GrowingTree tree(n);
  std::vector<Run> runs(n_runs);
  std::vector<idx> first_child, next_child;
  if (n_runs > 1) first_child.assign(n, -1), next_child.resize(n);
  share_out(n_runs, n_runs, [&](std::size_t r, int) {
    Run& run = runs[r];
    run.vertices = slice(n, Team{(int)r, n_runs});
    Pace pace;
    for (idx k = run.vertices.begin; k < run.vertices.end; k++, pace.go_on(8))
      for (off p = graph.ptr[perm[k]]; p < graph.ptr[perm[k] + 1]; p++) {
        const idx j = inverse[graph.ind[p]];
        if (j >= run.vertices.begin) tree.add_entry(k, j);
        else run.entries_before.emplace_back(k, j);
      }
    if (run.entries_before.empty()) return;
    for (idx j = run.vertices.begin; j < run.vertices.end; j++) {
      if (const idx k = tree.parent[j]; k >= 0) next_child[j] = first_child[k], first_child[k] = j;
      tree.parent[j] = tree.ancestor[j] = -1;
    }
  });
  Pace pace;
  for (const Run& run : runs) {
    if (run.entries_before.empty()) continue;
    auto entry = run.entries_before.begin();
    for (idx k = run.vertices.begin; k < run.vertices.end; k++, pace.go_on(8)) {
      for (idx j = first_child[k]; j >= 0; j = next_child[j]) tree.add_entry(k, j);
      for (; entry != run.entries_before.end() && entry->first == k; ++entry) tree.add_entry(k, entry->second);
    }
  }
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
