// Coarsening: clusters of two or three neighbours become the vertices of the next graph.
#pragma once
#include "analysis/dissection/graph.hpp"

namespace gs::nd {

inline constexpr idx kCoarsest = 24;  // vertices of the coarsest graphs; 100 gave 10 % more fill and took longer

// Appends coarser graphs until the last has at most `target` vertices or hardly anything matches any more.
// They lie in the arena. Cost: O(entries) a level.
void coarsen(Workspace& ws, Hierarchy& hierarchy, idx target, Random& random);

}  // namespace gs::nd
