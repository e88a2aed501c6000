// Elimination trees, their postorders, and disjoint subtrees for passes over them on several threads.
#pragma once
#include <atomic>
#include <vector>

#include "base/parallel.hpp"
#include "base/types.hpp"

namespace gs {

// Builds the elimination tree of a pattern from its rows, one after another.
//
// Row k of the factor reaches every column on the paths from its entries to k. The paths are shortened as they are
// walked: ancestor[j] is some vertex above j in the tree built so far.
struct GrowingTree {
  std::vector<idx> parent, ancestor;
  explicit GrowingTree(idx n) : parent(n, -1), ancestor(n, -1) {}

  // Entry j of row k; entries that are not left of the diagonal are ignored.
  void add_entry(idx k, idx j) {
    while (j < k) {
      const idx above = ancestor[j];
      if (above == k) break;
      ancestor[j] = k;
      if (above == -1) {
        parent[j] = k;
        break;
      }
      j = above;
    }
  }
};

// The elimination tree of graph[perm][:, perm]: parent[j] is the first row below the diagonal of column j of the
// Cholesky factor, -1 at roots; always parent[j] > j.
// Source: Liu, ACM TOMS 12 (1986), algorithm 4.2, with path compression. Cost: nearly linear in the edges, shared by
// the threads, and a pass over the vertices that is not.
std::vector<idx> elimination_tree(PatternView graph, const idx* perm);

// A postorder (gather) of a forest with parent[j] > j; children keep their order, so that a forest that is postordered
// already gives the identity. Cost: O(n), no stack.
std::vector<idx> postorder(const std::vector<idx>& parent);

// The tree of the vertices renumbered by `order` (gather).
std::vector<idx> renumber_tree(const std::vector<idx>& parent, const std::vector<idx>& order);

// Height of a forest with parent[j] > j: 0 when empty, 1 for isolated vertices.
idx tree_height(const std::vector<idx>& parent);

// Children of node s: list[ptr[s]] .. list[ptr[s+1]-1], ascending; the roots are those of one node more.
struct Children {
  std::vector<idx> ptr, list;

  explicit Children(const std::vector<idx>& parent) : ptr(parent.size() + 2), list(parent.size()) {
    const idx n = (idx)parent.size();
    const auto above = [&](idx s) { return parent[s] < 0 ? n : parent[s]; };
    for (idx s = 0; s < n; s++) ptr[above(s)]++;
    idx end = 0;
    for (idx& p : ptr) p = end += p;
    for (idx s = n; s-- > 0;) list[--ptr[above(s)]] = s;
  }
  void drop_roots() {
    ptr.pop_back();
    list.resize(ptr.back());
  }
  idx* begin(idx s) { return list.data() + ptr[s]; }
  idx* end(idx s) { return list.data() + ptr[s + 1]; }
};

// Below the cut: subtrees of at most a certain size, each the nodes begin .. end-1 with root end-1. Above the cut:
// `top`, ascending.
struct SubtreeCut {
  std::vector<Slice<idx>> subtrees;  // ascending
  std::vector<idx> top;

  // Calls subtree(k) and node(j) for all of them, in the order of the forest.
  template <class Subtree, class Node> void in_order(Subtree&& subtree, Node&& node) const {
    std::size_t k = 0;
    for (const idx j : top) {
      for (; k < subtrees.size() && subtrees[k].end <= j; k++) subtree(k);
      node(j);
    }
    for (; k < subtrees.size(); k++) subtree(k);
  }
};

// Nodes of the subtree of every node, itself included, of a forest with parent[j] > j.
std::vector<idx> subtree_sizes(const std::vector<idx>& parent);

// Cuts for a team of `threads`: subtrees of at most a fraction of the nodes, so that threads share them evenly. One
// thread gets the whole forest as it is: every tree is a subtree.
SubtreeCut cut_subtrees(const std::vector<idx>& size, int threads);

// visit(s, rank) for every node of a postordered forest after its children, on `threads` threads; size: subtree_sizes.
// Above the cut, the thread that has visited the last child goes on with the parent.
template <class Visit>
void up_the_forest(const std::vector<idx>& parent, const std::vector<idx>& size, int threads, Visit&& visit) {
  const SubtreeCut cut = cut_subtrees(size, threads);
  std::vector<std::atomic<idx>> children(cut.top.empty() ? 0 : parent.size());  // not visited yet, of nodes of the top
  const auto count = [&](idx s) {
    if (parent[s] >= 0) children[parent[s]].fetch_add(1, std::memory_order_relaxed);
  };
  if (!cut.top.empty()) {
    for (const Slice<idx>& subtree : cut.subtrees) count(subtree.end - 1);
    for (const idx s : cut.top) count(s);
  }
  share_out(threads, cut.subtrees.size(), [&](std::size_t k, int rank) {
    for (idx s = cut.subtrees[k].begin; s < cut.subtrees[k].end; s++) visit(s, rank);
    for (idx s = parent[cut.subtrees[k].end - 1]; s >= 0 && children[s].fetch_sub(1, std::memory_order_acq_rel) == 1;
         s = parent[s])
      visit(s, rank);
  });
}

// Processes a postordered forest from the leaves to the roots, on `threads` threads: visit(s) for every node, then
// give(s), which may write to its parent's data. Subtrees run in parallel, except that give runs for their roots in the
// order of the nodes, as do both calls for the nodes above them; so results are those of one thread.
template <class Visit, class Give>
void up_the_forest(const std::vector<idx>& parent, int threads, Visit&& visit, Give&& give) {
  const SubtreeCut cut = cut_subtrees(subtree_sizes(parent), threads);
  share_out(threads, cut.subtrees.size(), [&](std::size_t k, int) {
    for (idx s = cut.subtrees[k].begin; s < cut.subtrees[k].end; s++) {
      visit(s);
      if (s + 1 < cut.subtrees[k].end) give(s);
    }
  });
  cut.in_order([&](std::size_t k) { give(cut.subtrees[k].end - 1); },
               [&](idx s) {
                 visit(s);
                 give(s);
               });
}

}  // namespace gs
