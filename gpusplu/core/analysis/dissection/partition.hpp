// Multilevel vertex separators.
#pragma once
#include "analysis/dissection/graph.hpp"

namespace gs::nd {

// Vertices on side 0 and 1, and 2: in the separator.
struct Partition {
  signed char* side;
  off weight[3] = {0, 0, 0};  // of the sides and the separator
  off cut = 0;                // while it is an edge bisection: weight of the edges between the sides
};

// How the coarse levels are partitioned. Vertex separators at all levels suit graphs with few triangles (cuts: +30 %
// fill on grids); edge cuts, turned into a separator at the finest level, suit most others (separators: +25 % on
// elasticity): the cut of a coarse graph is that of the fine one, while coarse separators of dense stencils are thick
// and steer wrongly.
enum class Coarse { separators, cuts };

// Size at which coarsening of a graph of n vertices ends and V-cycles begin.
idx coarse_target(idx n);

// Separates hierarchy.level[0]; the last level of the hierarchy has about coarse_target(n) vertices. The caller owns
// the arrays of `part`. Cost: O(entries log n).
void find_separator(Workspace& ws, const Hierarchy& hierarchy, Coarse coarse, Partition& part, Random& random);

}  // namespace gs::nd
