// Minimum degree on small components.
#pragma once
#include "analysis/dissection/graph.hpp"

namespace gs::nd {

// Orders n vertices of the graph into order[0 .. n-1] by exact external degree. Their neighbours outside, which come
// later, count in the degrees (halo: 3-7 % less fill on 2D meshes and circuits). Cost: O(n d (n + halo) / 64) for
// fronts of d vertices.
void order_leaf(Workspace& ws, const Graph& whole, const idx* vertex, idx n, idx* order);

}  // namespace gs::nd
