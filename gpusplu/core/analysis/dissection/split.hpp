// Splitting a graph at its separator.
#pragma once
#include "analysis/dissection/refine.hpp"

namespace gs::nd {

// A part of the graph that is still to be ordered. Its arrays are contiguous in memory.
struct Component {
  Hierarchy hierarchy;          // level[0]: the component; coarser levels only if inherited
  const idx* vertex = nullptr;  // of level[0]'s vertices, their numbers in the whole graph
  idx first = 0;                // position of the component's first vertex in the order
  int depth = 0;                // number of cuts that led from the whole graph to the component
  std::uint64_t seed = 0;
  Arena* owner = nullptr;       // arena that holds the arrays; null if they are owned elsewhere:
  Arena::Mark mark{}, end{};    // its marks before and after them
  std::byte* memory = nullptr;  // the arrays
  std::size_t bytes = 0;

  void move_to(std::byte* to);  // moves the arrays, to overlapping memory too
};

// Makes the children of `component` on sides 0 and 1. With `inherit`, the children also get their part of the coarser
// levels; with `parallel`, the two may be made by different threads. Their arrays lie in ws.kept.
//
// A cluster with members on both sides, or in the separator, stays in a child with the weight of its members there and
// keeps its edges, of which some may have no counterpart in the finer level: such edges can cost quality near the
// boundary, but a partition of the coarse level is still one of the finer level. Cost: O(entries), a few times cheaper
// than coarsening again.
void split(Workspace& ws, const Component& component, const Partition& part, bool inherit, bool parallel,
           Component child[2]);

}  // namespace gs::nd
