// Amalgamation for throughput, after that along the critical path. Where fronts of phases 0-2 fill the device, the
// total is the sum of the device times of all fronts: mostly fixed costs and traffic of contribution blocks, which
// merging saves. Any child may merge as long as that falls, the front stays in these phases, and the modelled critical
// path does not grow by more than a tenth of the time of the device that all those fronts take: that time hides it.
// Cost: O(nsuper log nsuper), for sorting siblings; subtrees in parallel.
#include <algorithm>

#include "analysis/children.hpp"
#include "plan/fronts/front_tree.hpp"
#include "plan/fronts/time_model.hpp"
#include "plan/team.hpp"

namespace gs::gpu {
namespace {

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

}  // namespace

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
  up_the_forest(symbolic.super_parent, merge, [](idx) {});
}

}  // namespace gs::gpu
