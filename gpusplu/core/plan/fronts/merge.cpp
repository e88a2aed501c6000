// Where the fronts are numbered and their columns placed, after supernodes have merged.
//
// A front that took over others has the rows below of its topmost supernode: those of a descendant lie in its
// ancestors' columns or rows. The order of the remaining columns on every path to a root does not change, so lists of
// rows stay sorted, unless LDL^T reorders columns inside fronts; and contracting edges of a postordered tree leaves a
// postorder. Cost: O(structure).
#include <algorithm>
#include <numeric>
#include <utility>

#include "analysis/elimination_tree.hpp"
#include "analysis/graph.hpp"
#include "plan/fronts/plan.hpp"
#include "plan/fronts/time_model.hpp"
#include "plan/team.hpp"

namespace gs::gpu {
namespace {

int threads_of_forest(idx n) { return n < 4000 ? 1 : num_threads(); }

// Supernodes while they are merged into fronts.
struct FrontTree {
  struct Node {
    double width, rows, zeros;  // zeros: explicit ones that merging brought in, L and U
  };
  std::vector<Node> nodes;
  std::vector<idx> into;       // the supernode that this one became part of; -1 when it stays
  std::vector<double> finish;  // modelled [us]
  idx interface = -1;          // that nothing becomes part of

  explicit FrontTree(const Symbolic& symbolic)
      : nodes(symbolic.nsuper()), into(symbolic.nsuper(), -1), finish(symbolic.nsuper()) {
    for (idx s = 0; s < symbolic.nsuper(); s++) {
      const double width = symbolic.super_ptr[s + 1] - symbolic.super_ptr[s];
      nodes[s] = {width, width + (double)(symbolic.row_ptr[s + 1] - symbolic.row_ptr[s]), 0};
      if (symbolic.is_interface(s)) interface = s;
    }
  }
};

FrontTree::Node merged(const FrontTree::Node& child, const FrontTree::Node& parent) {
  FrontTree::Node both{child.width + parent.width, child.width + parent.rows, 0};
  both.zeros = child.zeros + parent.zeros + 2 * child.width * (both.rows - child.rows);
  return both;
}

// Amalgamation along the modelled critical path. Bottom up, a front takes over the child that finishes last as long as
// its own modelled finish falls by that, or stays and few explicit zeros come in.
// Cost: O(nsuper log nsuper); subtrees in parallel.

constexpr double kGrowth = 1.6;      // a merge may enlarge the two fronts by this factor
constexpr double kZeroShare = 0.25;  // and holds at most this share of zeros, or
constexpr double kZeros = 100;       // this many, when it does not shorten the path
constexpr double kNoLonger = 0.02;   // tolerance for "not longer" [us]

// Children of every front by finish, the last on top: skew heaps (Sleator and Tarjan, SIAM J. Comput. 15 (1986)),
// because a merge unites two sets of children.
class ChildHeaps {
 public:
  ChildHeaps(idx n, const std::vector<double>& finish) : finish_(finish), left_(n, -1), right_(n, -1) {}

  idx meld(idx a, idx b) {
    idx top = -1;
    for (idx* link = &top;; link = &left_[*link]) {
      if (b >= 0 && (a < 0 || later(b, a))) std::swap(a, b);
      *link = a;
      if (b < 0) return top;
      std::swap(left_[*link], right_[*link]);
      a = left_[*link];
    }
  }
  // Removes the top a and returns the rest; a is then a heap of its own.
  idx pop(idx a) { return meld(std::exchange(left_[a], -1), std::exchange(right_[a], -1)); }

 private:
  bool later(idx a, idx b) const { return finish_[a] != finish_[b] ? finish_[a] > finish_[b] : a < b; }

  const std::vector<double>& finish_;
  std::vector<idx> left_, right_;
};

void merge_by_path(const Symbolic& symbolic, const PlanParameters& parameters, const MergePhases& costs,
                   FrontTree& tree) {
  const idx ns = symbolic.nsuper();
  const ClassRows kind(parameters);
  const auto time = [&](const FrontTree::Node& v) { return merge_time(costs, kind((idx)v.rows), v.width, v.rows); };
  std::vector<idx> last(ns, -1);  // heap of children
  ChildHeaps heaps(ns, tree.finish);
  const auto finish_of = [&](idx s) { return s >= 0 ? tree.finish[s] : 0.0; };
  const auto merge = [&](idx s) {
    FrontTree::Node& node = tree.nodes[s];
    double now = finish_of(last[s]) + time(node);
    while (last[s] >= 0 && s != tree.interface) {
      const idx c = last[s], others = heaps.pop(c);
      const FrontTree::Node& child = tree.nodes[c];
      const FrontTree::Node both = merged(child, node);
      const double then = std::max(finish_of(others), finish_of(last[c])) + time(both);
      const double entries = both.rows * both.rows;
      const bool faster =
          then < now - 1e-9 && entries < kGrowth * (node.rows * node.rows + child.rows * child.rows) + 64;
      const bool cheap = then < now + kNoLonger && (both.zeros < kZeroShare * entries || both.zeros < kZeros);
      if ((!faster && !cheap) || both.rows > MOST_ROWS) {
        last[s] = heaps.meld(others, c);
        break;
      }
      node = both;
      tree.into[c] = s;
      last[s] = heaps.meld(others, last[c]);
      now = then;
    }
    tree.finish[s] = now;
  };
  up_the_forest(symbolic.super_parent, threads_of_forest(ns), merge, [&](idx s) {
    if (const idx above = symbolic.super_parent[s]; above >= 0) last[above] = heaps.meld(last[above], s);
  });
}

// Amalgamation for throughput, after that along the critical path. Where fronts of phases 0-2 fill the device, the
// total is the sum of the device times of all fronts: mostly fixed costs and traffic of contribution blocks, which
// merging saves. Any child may merge as long as that falls, the front stays in these phases, and the modelled critical
// path does not grow by more than a tenth of the time of the device that all those fronts take: that time hides it.
// Cost: O(nsuper log nsuper), for sorting siblings; subtrees in parallel.

constexpr double kPathShare = 0.1;
constexpr double kMergedZeroShare = 0.6;  // of the stored entries of L and U
constexpr double kFull = 8;  // critical paths of phases 0-2: from this much work on the device counts as full

// The parent of every node that stays, as it is in the tree so far.
std::vector<idx> parents_of(const Symbolic& symbolic, const FrontTree& tree) {
  const idx ns = symbolic.nsuper();
  std::vector<idx> parent(ns, -1), stays(ns);
  for (idx s = ns; s-- > 0;) {
    stays[s] = tree.into[s] < 0 ? s : stays[tree.into[s]];
    if (tree.into[s] < 0 && symbolic.super_parent[s] >= 0) parent[s] = stays[symbolic.super_parent[s]];
  }
  return parent;
}

void merge_by_work(const Symbolic& symbolic, const PlanParameters& parameters, const MergePhases& costs,
                   FrontTree& tree) {
  const idx ns = symbolic.nsuper();
  const ClassRows kind(parameters);
  const DeviceTimes device_times(parameters, symbolic.cholesky, symbolic.one_triangle());
  const auto time = [&](const FrontTree::Node& v) { return merge_time(costs, kind((idx)v.rows), v.width, v.rows); };
  const auto work = [&](const FrontTree::Node& v) { return device_times(v.width, v.rows); };
  const auto small = [&](const FrontTree::Node& v) { return v.rows <= parameters.block_rows; };
  const std::vector<idx> parent = parents_of(symbolic, tree);
  Children children(parent);
  double total_work = 0, longest = 0, longest_small = 0;
  // Modelled time after a front up to the root, in all and in phases 0-2; and when its children are done.
  std::vector<double> above(ns), above_small(ns), before(ns);
  for (idx s = ns; s-- > 0;) {
    if (tree.into[s] >= 0) continue;
    const double mine = time(tree.nodes[s]);
    const idx p = parent[s];
    if (p >= 0) {
      above[s] = above[p] + time(tree.nodes[p]);
      above_small[s] = above_small[p] + (small(tree.nodes[p]) ? time(tree.nodes[p]) : 0);
    }
    longest = std::max(longest, tree.finish[s]);
    if (!small(tree.nodes[s])) continue;
    longest_small = std::max(longest_small, above_small[s] + mine);
    total_work += work(tree.nodes[s]);
  }
  if (total_work < kFull * longest_small) return;
  const double bound = longest + kPathShare * total_work;
  const auto merge = [&](idx s) {
    if (tree.into[s] >= 0 || s == tree.interface) return;
    FrontTree::Node& node = tree.nodes[s];
    idx *first = children.begin(s), *last = children.end(s);
    double latest = 0;
    for (const idx* c = first; c < last; c++) latest = std::max(latest, tree.finish[*c]);
    // Those with more rows share most with the parent.
    std::sort(first, last, [&](idx a, idx b) {
      const double x = tree.nodes[a].rows - tree.nodes[a].width, y = tree.nodes[b].rows - tree.nodes[b].width;
      return x != y ? x > y : a < b;
    });
    double now = work(node);
    for (const idx* c = first; c < last; c++) {
      const FrontTree::Node both = merged(tree.nodes[*c], node);
      const double then = work(both);
      if (both.zeros > kMergedZeroShare * both.width * (2 * both.rows - both.width)) continue;
      if (!small(both) || then >= now + work(tree.nodes[*c]) || latest + time(both) + above[s] > bound) continue;
      node = both;
      now = then;
      tree.into[*c] = s;
    }
    for (const idx* c = first; c < last; c++)
      before[s] = std::max(before[s], tree.into[*c] == s ? before[*c] : tree.finish[*c]);
    tree.finish[s] = before[s] + time(node);
  };
  up_the_forest(symbolic.super_parent, threads_of_forest(ns), merge, [](idx) {});
}

// The columns of a symbolic's supernodes in the order of their pivots, and the partner of each, itself where it has
// none. Columns go by their positions in the symbolic.
struct PivotOrder {
  std::vector<idx> columns, partner;
  explicit PivotOrder(const Symbolic& symbolic) : columns(symbolic.n), partner(symbolic.n) {
    std::iota(columns.begin(), columns.end(), 0);
    partner = columns;
    const std::vector<idx> position = inverse_permutation(symbolic.col_perm.data(), symbolic.n);
    for (std::size_t k = 0; k < symbolic.pivot_order.size(); k++) columns[k] = position[symbolic.pivot_order[k]];
    for (std::size_t j = 0; j < symbolic.partner.size(); j++) partner[position[j]] = position[symbolic.partner[j]];
  }
};

// Puts columns that are partners next to each other, the second after the first, and both into the same panel of PANEL
// columns: where the end of a panel would separate them, the last single column of that panel goes after them. There is
// one, because an even number of columns cannot consist of pairs and half of one.
void align_pairs(const std::vector<idx>& partner, std::vector<idx>& columns) {
  std::vector<idx> sorted(columns), out;
  std::sort(sorted.begin(), sorted.end());
  const auto is_member = [&](idx j) { return std::binary_search(sorted.begin(), sorted.end(), j); };
  std::vector<char> single, done(columns.size(), 0);  // `done` by place in `sorted`
  const auto mark = [&](idx j) -> char& {
    return done[std::lower_bound(sorted.begin(), sorted.end(), j) - sorted.begin()];
  };
  for (const idx j : columns) {
    if (mark(j)) continue;
    mark(j) = 1;
    const idx other = partner[j];
    if (other == j || !is_member(other)) {
      out.push_back(j), single.push_back(1);
      continue;
    }
    mark(other) = 1;
    out.insert(out.end(), {j, other}), single.insert(single.end(), {0, 0});
    if (out.size() % PANEL != 1) continue;
    std::size_t last_single = out.size() - 3;
    while (!single[last_single]) last_single--;
    std::rotate(out.begin() + last_single, out.begin() + last_single + 1, out.end());
    std::rotate(single.begin() + last_single, single.begin() + last_single + 1, single.end());
  }
  columns = std::move(out);
}

// Of LDL^T: every front's columns in the order of their pivots, pairs next to each other. Rows below may be out of
// order then.
void order_pivots(const Symbolic& symbolic, const std::vector<idx>& front_of, RawVector<idx>& position_of, Plan& plan) {
  if (symbolic.pivot_order.empty() && symbolic.partner.empty()) return;
  const PivotOrder order(symbolic);
  std::vector<idx> columns;  // of a front, by the symbolic's supernodes
  std::vector<std::vector<idx>> supernodes(plan.nf);
  for (idx s = 0; s < symbolic.nsuper(); s++) supernodes[front_of[s]].push_back(s);
  for (idx f = 0; f < plan.nf; f++) {
    columns.clear();
    for (const idx s : supernodes[f])
      columns.insert(columns.end(), order.columns.begin() + symbolic.super_ptr[s],
                     order.columns.begin() + symbolic.super_ptr[s + 1]);
    align_pairs(order.partner, columns);
    for (idx k = 0; k < plan.width[f]; k++) position_of[columns[k]] = plan.first[f] + k;
  }
}

// Permutations and rows below, in positions of the plan.
void place_columns(const Symbolic& symbolic, const FrontTree& tree, const std::vector<idx>& front_of, Plan& plan) {
  const idx ns = symbolic.nsuper(), n = symbolic.n;
  std::vector<idx> next = plan.first, begin(ns);  // of the columns of a supernode
  for (idx s = 0; s < ns; s++) {
    begin[s] = next[front_of[s]];
    next[front_of[s]] += symbolic.super_ptr[s + 1] - symbolic.super_ptr[s];
  }
  RawVector<idx> position_of(n);  // of the symbolic's columns
  plan.row_perm.resize(n), plan.col_perm.resize(n);
  over_range(ns, n, [&](idx first, idx last) {
    for (idx s = first; s < last; s++)
      for (idx j = symbolic.super_ptr[s]; j < symbolic.super_ptr[s + 1]; j++)
        position_of[j] = begin[s] + j - symbolic.super_ptr[s];
  });
  order_pivots(symbolic, front_of, position_of, plan);
  over_range(n, n, [&](idx first, idx last) {
    for (idx j = first; j < last; j++) {
      plan.row_perm[position_of[j]] = symbolic.row_perm[j];
      plan.col_perm[position_of[j]] = symbolic.col_perm[j];
    }
  });
  plan.below.resize(plan.below_ptr[plan.nf]);
  over_range(ns, (off)plan.below.size(), [&](idx first, idx last) {
    for (idx s = first; s < last; s++) {
      if (tree.into[s] >= 0) continue;
      idx *const rows = plan.below.data() + plan.below_ptr[front_of[s]], *to = rows;
      for (off p = symbolic.row_ptr[s]; p < symbolic.row_ptr[s + 1]; p++) *to++ = position_of[symbolic.row_ind[p]];
      if (!std::is_sorted(rows, to)) std::sort(rows, to);
    }
  });
}

}  // namespace

void merge_fronts(const Symbolic& symbolic, const MergePhases& costs, Plan& plan) {
  const idx ns = symbolic.nsuper();
  FrontTree merging(symbolic);
  merge_by_path(symbolic, plan.parameters, costs, merging);
  merge_by_work(symbolic, plan.parameters, costs, merging);
  // Number of the front that supernode s belongs to.
  std::vector<idx> front_of(ns);
  idx nf = 0;
  for (idx s = 0; s < ns; s++)
    if (merging.into[s] < 0) front_of[s] = nf++;
  for (idx s = ns; s-- > 0;)
    if (merging.into[s] >= 0) front_of[s] = front_of[merging.into[s]];
  plan.n = symbolic.n, plan.nf = nf;
  plan.width.assign(nf, 0), plan.rows.resize(nf), plan.first.resize(nf), plan.parent.assign(nf, -1);
  plan.below_ptr.assign((std::size_t)nf + 1, 0);
  for (idx s = 0; s < ns; s++) plan.width[front_of[s]] += symbolic.super_ptr[s + 1] - symbolic.super_ptr[s];
  idx position = 0;
  for (idx s = 0; s < ns; s++) {
    if (merging.into[s] >= 0) continue;
    const idx f = front_of[s], above = symbolic.super_parent[s];
    const off H = symbolic.row_ptr[s + 1] - symbolic.row_ptr[s];
    plan.rows[f] = plan.width[f] + (idx)H;
    plan.first[f] = position;
    position += plan.width[f];
    plan.parent[f] = above >= 0 ? front_of[above] : -1;
    plan.below_ptr[f + 1] = plan.below_ptr[f] + H;
  }
  Children children(plan.parent);
  children.drop_roots();
  plan.child_ptr = std::move(children.ptr), plan.child = std::move(children.list);
  place_columns(symbolic, merging, front_of, plan);
}

}  // namespace gs::gpu
