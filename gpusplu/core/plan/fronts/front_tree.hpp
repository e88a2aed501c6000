// Supernodes while they are merged into fronts.
#pragma once
#include <vector>

#include "plan/fronts/plan.hpp"

namespace gs::gpu {

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

inline FrontTree::Node merged(const FrontTree::Node& child, const FrontTree::Node& parent) {
  FrontTree::Node both{child.width + parent.width, child.width + parent.rows, 0};
  both.zeros = child.zeros + parent.zeros + 2 * child.width * (both.rows - child.rows);
  return both;
}

// Merges that shorten the critical path: into, nodes and finish; merge_path.cpp.
void merge_by_path(const Symbolic& symbolic, const PlanParameters& parameters, const MergePhases& costs,
                   FrontTree& tree);
// Further merges that save work of a device that is full; merge_work.cpp.
void merge_by_work(const Symbolic& symbolic, const PlanParameters& parameters, const MergePhases& costs,
                   FrontTree& tree);

}  // namespace gs::gpu
