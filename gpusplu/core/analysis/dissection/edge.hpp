// Edge bisections: the cut of a coarse graph is that of the fine one, while its vertex separators are not. Where coarse
// separators are thick and steer wrongly (dense stencils), the coarse levels are bisected by edges instead.
#pragma once
#include "analysis/dissection/refine.hpp"

namespace gs::nd {

// Fiduccia-Mattheyses refinement. ws.boundary: a superset of the cut's ends, on entry and on exit.
void refine_cut(Workspace& ws, const Graph& g, Partition& part);

// The best of kTrials bisections, each grown from a random vertex and refined. For small graphs.
void grow_cut(Workspace& ws, const Graph& g, Partition& part, Random& random);

// Makes the lighter of the cut's two boundaries the separator; ws.boundary is exactly it then.
void cut_to_separator(Workspace& ws, const Graph& g, Partition& part);

}  // namespace gs::nd
