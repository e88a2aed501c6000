// Amalgamation along the modelled critical path. Bottom up, a front takes over the child that finishes last as long as
// its own modelled finish falls by that, or stays and few explicit zeros come in.
// Cost: O(nsuper log nsuper); subtrees in parallel.
#include <algorithm>
#include <utility>

#include "plan/fronts/front_tree.hpp"
#include "plan/fronts/time_model.hpp"
#include "plan/team.hpp"

namespace gs::gpu {
namespace {

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

}  // namespace

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
  up_the_forest(symbolic.super_parent, merge, [&](idx s) {
    if (const idx above = symbolic.super_parent[s]; above >= 0) last[above] = heaps.meld(last[above], s);
  });
}

}  // namespace gs::gpu
