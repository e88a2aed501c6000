// Elimination trees and their postorders.
#pragma once
#include <vector>

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
// The same with a given inverse of perm.
std::vector<idx> elimination_tree(PatternView graph, const idx* perm, const idx* inverse_perm);

// A postorder (gather) of a forest with parent[j] > j; children keep their order, so that a forest that is postordered
// already gives the identity. Cost: O(n), no stack.
std::vector<idx> postorder(const std::vector<idx>& parent);

// The tree of the vertices renumbered by `order` (gather).
std::vector<idx> renumber_tree(const std::vector<idx>& parent, const std::vector<idx>& order);

// Height of a forest with parent[j] > j: 0 when empty, 1 for isolated vertices.
idx tree_height(const std::vector<idx>& parent);

}  // namespace gs
