// Where the fronts are numbered and their columns placed, after supernodes have merged.
//
// A front that took over others has the rows below of its topmost supernode: those of a descendant lie in its
// ancestors' columns or rows. The order of the remaining columns on every path to a root does not change, so lists of
// rows stay sorted, unless LDL^T reorders columns inside fronts; and contracting edges of a postordered tree leaves a
// postorder. Cost: O(structure).
#include <algorithm>

#include "analysis/children.hpp"
#include "plan/fronts/front_tree.hpp"
#include "plan/fronts/pivot_order.hpp"
#include "plan/team.hpp"

namespace gs::gpu {
namespace {

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
