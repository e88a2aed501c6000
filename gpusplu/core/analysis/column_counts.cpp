#include "analysis/column_counts.hpp"

#include <algorithm>
#include <utility>

#include "analysis/elimination_tree.hpp"
#include "analysis/graph.hpp"

namespace gs {
namespace {

// Row i of L is a subtree of the elimination tree that is pruned at the leaves where row i of the matrix begins: j is
// such a leaf when no vertex of j's own subtree is adjacent to i. A column's count is the number of row subtrees that
// contain it; each is charged +1 at its leaves and -1 at the lowest common ancestor of two successive leaves, and -1 at
// the parent of its root i, so that summing the charges over subtrees gives the counts.
//
// Disjoint subtrees are processed independently. Of the rows above them each keeps its first and its last leaf: the
// common ancestor of the last leaf of one subtree and the first of the next lies above both.
class Counting {
 public:
  Counting(PatternView graph, const idx* perm, const idx* inverse_perm, const std::vector<idx>& parent)
      : graph_(graph),
        perm_(perm),
        inverse_perm_(inverse_perm),
        parent_(parent),
        size_(subtree_sizes(parent)),
        count_(graph.n),
        previous_leaf_(graph.n),
        ancestor_(graph.n) {
    over_range(graph.n, graph.n, [&](idx begin, idx end) {
      for (idx j = begin; j < end; j++) {
        previous_leaf_[j] = -1;
        ancestor_[j] = j;
        count_[j] = size_[j] == 1;  // a leaf of the tree: its own row subtree starts here
      }
    });
  }

  std::vector<idx> run() {
    const int threads = threads_for_random(graph_.nnz());
    const SubtreeCut cut = cut_subtrees(size_, threads);
    std::vector<idx> top_number(threads > 1 ? graph_.n : 0);
    for (std::size_t t = 0; t < cut.top.size(); t++) top_number[cut.top[t]] = (idx)t;
    std::vector<std::vector<Leaf>> above(cut.subtrees.size());
    std::vector<std::vector<idx>> last(threads);  // of each thread: leaf of the rows above in the current subtree
    share_out(threads, cut.subtrees.size(), [&](std::size_t k, int rank) {
      std::vector<idx>& leaf = last[rank];
      leaf.resize(cut.top.size(), -1);
      below_the_cut(cut.subtrees[k], top_number.data(), leaf.data(), above[k]);
    });
    cut.in_order(
        [&](std::size_t k) {
          for (const Leaf& leaf : above[k]) {
            if (previous_leaf_[leaf.row] >= 0) count_[find_root(previous_leaf_[leaf.row])]--;
            previous_leaf_[leaf.row] = leaf.column;
          }
          finish(cut.subtrees[k].end - 1);
        },
        [&](idx j) {
          for_neighbours(j, [&](idx i) { charge(j, previous_leaf_[i]); });
          finish(j);
        });
    cut.in_order([&](std::size_t k) { pass_on(cut.subtrees[k].end - 1); }, [&](idx j) { pass_on(j); });
    return std::move(count_);
  }

 private:
  struct Leaf {
    idx row, column;
  };

  template <class F> void for_neighbours(idx j, F&& visit) const {
    const idx vertex = perm_[j];
    for (off p = graph_.ptr[vertex]; p < graph_.ptr[vertex + 1]; p++) visit(inverse_perm_[graph_.ind[p]]);
  }

  // Row j is complete: later columns are not in it.
  void finish(idx j) {
    previous_leaf_[j] = graph_.n;
    if (parent_[j] < 0) return;
    count_[parent_[j]]--;
    ancestor_[j] = parent_[j];
  }

  void charge(idx j, idx& previous) {
    if (j - size_[j] + 1 <= previous) return;
    count_[j]++;
    if (previous >= 0) count_[find_root(previous)]--;
    previous = j;
  }

  void pass_on(idx j) {
    if (parent_[j] >= 0) count_[parent_[j]] += count_[j];
  }

  idx find_root(idx j) {  // of the tree of finished vertices; halves the path as it goes
    while (ancestor_[j] != j) j = ancestor_[j] = ancestor_[ancestor_[j]];
    return j;
  }

  void below_the_cut(Slice<idx> subtree, const idx* top_number, idx* last_leaf, std::vector<Leaf>& above) {
    Pace pace;
    for (idx j = subtree.begin; j < subtree.end; j++, pace.go_on(8)) {
      for_neighbours(j, [&](idx i) {
        if (i < subtree.end) return charge(j, previous_leaf_[i]);
        idx& last = last_leaf[top_number[i]];
        if (last < 0) above.push_back({i, -1});
        charge(j, last);
      });
      if (j + 1 < subtree.end) finish(j);
    }
    for (Leaf& leaf : above) leaf.column = std::exchange(last_leaf[top_number[leaf.row]], -1);
    for (idx j = subtree.begin; j + 1 < subtree.end; j++) pass_on(j);
  }

  const PatternView graph_;
  const idx *perm_, *inverse_perm_;
  const std::vector<idx>& parent_;
  const std::vector<idx> size_;
  std::vector<idx> count_;
  RawVector<idx> previous_leaf_, ancestor_;
};

}  // namespace

std::vector<idx> column_counts(PatternView graph, const idx* perm, const idx* inverse_perm,
                               const std::vector<idx>& parent) {
  return Counting(graph, perm, inverse_perm, parent).run();
}

void count_columns(PatternView graph, OrderedTree& tree) {
  if (!tree.col_count.empty()) return;
  const std::vector<idx> inverse = inverse_permutation(tree.perm.data(), graph.n);
  tree.col_count = column_counts(graph, tree.perm.data(), inverse.data(), tree.parent);
}

OrderedTree ordered_tree(PatternView graph, const std::vector<idx>& perm, const std::optional<FactorSize>& size) {
  OrderedTree tree;
  tree.parent = elimination_tree(graph, perm.data());
  const std::vector<idx> order = postorder(tree.parent);
  tree.perm = gather(perm, order);
  tree.parent = renumber_tree(tree.parent, order);
  FactorSize counted;
  if (!size) {
    count_columns(graph, tree);
    for (const idx count : tree.col_count) counted.add(count, 1);
  }
  tree.cost.lnz = size ? size->lnz : counted.lnz;
  tree.cost.flops = size ? size->flops : counted.flops;
  tree.cost.levels = tree_height(tree.parent);
  tree.cost.roots = (idx)std::count(tree.parent.begin(), tree.parent.end(), -1);
  return tree;
}

}  // namespace gs
