// Amalgamation along the modelled critical path, and the front tree that is left.
//
// Bottom up, a front takes over the child that finishes last as long as its own modelled finish falls by that, or stays
// and few explicit zeros come in. A front that took over others has the rows below of its topmost supernode: those of a
// descendant lie in its ancestors' columns or rows. The order of the remaining columns on every way to a root does not
// change, so lists of rows stay sorted; and contracting edges of a postordered tree leaves a postorder.
// Cost: O(nsuper log nsuper + structure), one thread.
#include <algorithm>

#include "plan/front_tree.hpp"
#include "plan/plan.hpp"
#include "plan/time_model.hpp"

namespace gs::gpu {
namespace {

constexpr double kGrowth = 1.6;      // a merge may enlarge the two fronts by this factor
constexpr double kZeroShare = 0.25;  // and holds at most this share of zeros, or
constexpr double kZeros = 100;       // this many, when it does not shorten the path
constexpr double kNoLonger = 0.02;   // what counts as not longer [us]

// Children of every front by finish, the last on top: pairing heaps (Fredman, Sedgewick, Sleator, Tarjan, Algorithmica
// 1 (1986)), because a merge unites two sets of children.
class ChildHeaps {
 public:
  ChildHeaps(idx n, const std::vector<double>& finish) : finish_(finish), below_(n, -1), next_(n, -1) {}

  idx meld(idx a, idx b) {
    if (a < 0) return b;
    if (b < 0) return a;
    if (later(b, a)) std::swap(a, b);
    next_[b] = below_[a];
    below_[a] = b;
    return a;
  }
  // What is left without the top a; a is a heap of its own then.
  idx pop(idx a) {
    idx pairs = -1;
    for (idx b = below_[a]; b >= 0;) {
      const idx c = next_[b], following = c >= 0 ? next_[c] : -1;
      next_[b] = -1;
      if (c >= 0) next_[c] = -1;
      b = meld(b, c);
      next_[b] = pairs;
      pairs = b;
      b = following;
    }
    idx top = -1;
    while (pairs >= 0) {
      const idx following = next_[pairs];
      next_[pairs] = -1;
      top = meld(top, pairs);
      pairs = following;
    }
    below_[a] = -1;
    return top;
  }

 private:
  bool later(idx a, idx b) const { return finish_[a] != finish_[b] ? finish_[a] > finish_[b] : a < b; }

  const std::vector<double>& finish_;
  std::vector<idx> below_, next_;
};

// Along the critical path: fills nodes, into and finish of `tree`.
void merge_by_path(const Symbolic& symbolic, const PlanParameters& parameters, FrontTree& tree) {
  const idx ns = symbolic.nsuper();
  const ClassRows kind(parameters);
  const MergeTimes times;
  const auto time = [&](const FrontTree::Node& v) { return times(kind((idx)v.rows), v.width, v.rows); };
  std::vector<idx> last(ns, -1);  // heap of children
  ChildHeaps heaps(ns, tree.finish);
  const auto finish_of = [&](idx s) { return s >= 0 ? tree.finish[s] : 0.0; };
  for (idx s = 0; s < ns; s++) {
    FrontTree::Node& node = tree.nodes[s];
    double now = finish_of(last[s]) + time(node);
    while (last[s] >= 0) {
      const idx c = last[s], others = heaps.pop(c);
      const FrontTree::Node& child = tree.nodes[c];
      const FrontTree::Node both = merged(child, node);
      const double then = std::max(finish_of(others), finish_of(last[c])) + time(both);
      const double entries = both.rows * both.rows;
      const bool faster =
          then < now - 1e-9 && entries < kGrowth * (node.rows * node.rows + child.rows * child.rows) + 64;
      const bool cheap = then < now + kNoLonger && (both.zeros < kZeroShare * entries || both.zeros < kZeros);
      if ((!faster && !cheap) || both.rows > kMostRows) {
        last[s] = heaps.meld(others, c);
        break;
      }
      node = both;
      tree.into[c] = s;
      last[s] = heaps.meld(others, last[c]);
      now = then;
    }
    tree.finish[s] = now;
    if (const idx above = symbolic.super_parent[s]; above >= 0) last[above] = heaps.meld(last[above], s);
  }
}

}  // namespace

void merge_fronts(const Symbolic& symbolic, Plan& plan) {
  const idx ns = symbolic.nsuper(), n = symbolic.n;
  FrontTree merging(symbolic);
  merge_by_path(symbolic, plan.parameters, merging);
  merge_by_work(symbolic, plan.parameters, merging);
  // Number of the front that supernode s belongs to.
  std::vector<idx> front_of(ns);
  idx nf = 0;
  for (idx s = 0; s < ns; s++)
    if (merging.into[s] < 0) front_of[s] = nf++;
  for (idx s = ns; s-- > 0;)
    if (merging.into[s] >= 0) front_of[s] = front_of[merging.into[s]];
  plan.n = n, plan.nf = nf;
  plan.width.assign(nf, 0), plan.rows.resize(nf), plan.first.resize(nf), plan.parent.assign(nf, -1);
  plan.finish.resize(nf), plan.below_ptr.assign((std::size_t)nf + 1, 0), plan.child_ptr.assign((std::size_t)nf + 1, 0);
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
    plan.finish[f] = merging.finish[s];
    plan.below_ptr[f + 1] = plan.below_ptr[f] + H;
    if (above >= 0) plan.child_ptr[plan.parent[f] + 1]++;
  }
  for (idx f = 0; f < nf; f++) plan.child_ptr[f + 1] += plan.child_ptr[f];
  plan.child.resize(plan.child_ptr[nf]);
  std::vector<idx> next(plan.child_ptr.begin(), plan.child_ptr.end() - 1);
  for (idx f = 0; f < nf; f++)
    if (plan.parent[f] >= 0) plan.child[next[plan.parent[f]]++] = f;

  // Plan positions of the symbolic's columns.
  std::vector<idx> position_of(n);
  next = plan.first;
  for (idx s = 0; s < ns; s++)
    for (idx j = symbolic.super_ptr[s]; j < symbolic.super_ptr[s + 1]; j++) position_of[j] = next[front_of[s]]++;
  plan.row_perm.resize(n), plan.col_perm.resize(n);
  for (idx j = 0; j < n; j++) {
    plan.row_perm[position_of[j]] = symbolic.row_perm[j];
    plan.col_perm[position_of[j]] = symbolic.col_perm[j];
  }
  plan.below.resize(plan.below_ptr[nf]);
  for (idx s = 0; s < ns; s++) {
    if (merging.into[s] >= 0) continue;
    idx* to = plan.below.data() + plan.below_ptr[front_of[s]];
    for (off p = symbolic.row_ptr[s]; p < symbolic.row_ptr[s + 1]; p++) *to++ = position_of[symbolic.row_ind[p]];
  }
}

}  // namespace gs::gpu
