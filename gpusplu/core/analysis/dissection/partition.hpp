// Multilevel vertex separators.
#pragma once
#include "analysis/dissection/graph.hpp"

namespace gs::nd {

struct Partition {
  RawVector<signed char> side;  // of each vertex, 0 or 1; 2: in the separator
  off weight[3] = {0, 0, 0};    // of the sides and the separator
  off cut = 0;                  // while it is an edge bisection: weight of the edges between the sides
  std::vector<idx> boundary;    // a superset of the separator, or of the cut's ends
};

// How the coarse levels are partitioned. Vertex separators at all levels suit graphs with few triangles (cuts: +30 %
// fill on grids); edge cuts, turned into a separator at the finest level, suit most others (separators: +25 % on
// elasticity): the cut of a coarse graph is that of the fine one, while coarse separators of dense stencils are thick
// and steer wrongly.
enum class Coarse { separators, cuts };

// Size at which coarsening of a graph of n vertices ends and V-cycles begin.
idx coarse_target(idx n);

// Separates hierarchy.level[0]; the last level of the hierarchy has about coarse_target(n) vertices. Cost: O(entries
// log n).
Partition find_separator(Workspace& ws, const Hierarchy& hierarchy, Coarse coarse, Random& random);

}  // namespace gs::nd
