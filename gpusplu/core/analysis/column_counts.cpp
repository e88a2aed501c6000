#include "analysis/column_counts.hpp"

#include "analysis/elimination_tree.hpp"
#include "analysis/graph.hpp"

namespace gs {

// Row i of L is a subtree of the elimination tree that is pruned at the leaves where row i of the matrix begins: j is
// such a leaf when no vertex of j's own subtree is adjacent to i. A column's count is the number of row subtrees that
// contain it; each is charged +1 at its leaves and -1 at the lowest common ancestor of two successive leaves, and -1 at
// the parent of its root i, so that summing the charges over subtrees gives the counts.
std::vector<idx> column_counts(PatternView graph, const idx* perm, const idx* inverse_perm,
                               const std::vector<idx>& parent) {
  const idx n = graph.n;
  std::vector<idx> count(n), first(n, -1), previous_leaf(n, -1), ancestor(n);
  for (idx j = 0; j < n; j++) {
    ancestor[j] = j;
    if (first[j] < 0) {  // a leaf of the tree: its own row subtree starts here
      first[j] = j;
      count[j] = 1;
    }
    if (parent[j] >= 0 && first[parent[j]] < 0) first[parent[j]] = first[j];
  }
  const auto find_root = [&](idx j) {  // of the tree of finished vertices; halves the path as it goes
    while (ancestor[j] != j) j = ancestor[j] = ancestor[ancestor[j]];
    return j;
  };
  for (idx j = 0; j < n; j++) {
    if (parent[j] >= 0) count[parent[j]]--;
    const idx vertex = perm[j];
    for (off p = graph.ptr[vertex]; p < graph.ptr[vertex + 1]; p++) {
      const idx i = inverse_perm[graph.ind[p]];
      if (first[j] <= previous_leaf[i]) continue;
      count[j]++;
      if (previous_leaf[i] >= 0) count[find_root(previous_leaf[i])]--;
      previous_leaf[i] = j;
    }
    previous_leaf[j] = n;  // row j is complete: later columns are not in it
    if (parent[j] >= 0) ancestor[j] = parent[j];
  }
  for (idx j = 0; j < n; j++)
    if (parent[j] >= 0) count[parent[j]] += count[j];
  return count;
}

OrderedTree ordered_tree(PatternView graph, std::vector<idx> perm) {
  OrderedTree tree;
  tree.parent = elimination_tree(graph, perm.data());
  const std::vector<idx> order = postorder(tree.parent);
  tree.perm = gather(perm, order);
  tree.parent = renumber_tree(tree.parent, order);
  const std::vector<idx> inverse = inverse_permutation(tree.perm.data(), graph.n);
  tree.col_count = column_counts(graph, tree.perm.data(), inverse.data(), tree.parent);
  for (const idx count : tree.col_count) {
    tree.cost.lnz += count;
    tree.cost.flops += (double)count * count;
  }
  tree.cost.levels = tree_height(tree.parent);
  return tree;
}

OrderingCost ordering_cost(PatternView graph, const idx* perm) {
  return ordered_tree(graph, std::vector<idx>(perm, perm + graph.n)).cost;
}

}  // namespace gs
