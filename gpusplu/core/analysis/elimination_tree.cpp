#include "analysis/elimination_tree.hpp"

#include <algorithm>

#include "analysis/graph.hpp"

namespace gs {

std::vector<idx> elimination_tree(PatternView graph, const idx* perm) {
  return elimination_tree(graph, perm, inverse_permutation(perm, graph.n).data());
}

// Row k of the factor reaches every column on the paths from its entries to k. The paths are shortened as they are
// walked: ancestor[j] is some vertex above j in the tree built so far.
std::vector<idx> elimination_tree(PatternView graph, const idx* perm, const idx* inverse_perm) {
  std::vector<idx> parent(graph.n, -1), ancestor(graph.n, -1);
  for (idx k = 0; k < graph.n; k++) {
    const idx vertex = perm[k];
    for (off p = graph.ptr[vertex]; p < graph.ptr[vertex + 1]; p++) {
      idx j = inverse_perm[graph.ind[p]];
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
  }
  return parent;
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
  for (std::size_t k = 0; k < order.size(); k++) {
    const idx above = parent[order[k]];
    out[k] = above >= 0 ? place[above] : -1;
  }
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

}  // namespace gs
