// Parts of a graph that are ordered by themselves: its connected components, and what a separator leaves.
#pragma once
#include "analysis/dissection/partition.hpp"

namespace gs::nd {

// A part of the graph that is still to be ordered.
struct Component {
  Hierarchy hierarchy;          // level[0]: the component; coarser levels only if inherited
  const idx* vertex = nullptr;  // of level[0]'s vertices, their numbers in the whole graph
  idx first = 0;                // position of the component's first vertex in the order
  int depth = 0;                // number of cuts that led from the whole graph to the component
  std::uint64_t seed = 0;
  std::shared_ptr<std::vector<RawVector<std::byte>>> memory;  // of the arrays; null if they are owned elsewhere

  template <class T> T* get(std::size_t count) {
    if (!memory) memory = std::make_shared<std::vector<RawVector<std::byte>>>();
    return reinterpret_cast<T*>(memory->emplace_back(count * sizeof(T)).data());
  }
  idx n() const { return hierarchy.level[0].n; }
};

// The graph of n vertices of `whole`, ascending. local: workspace of whole.n, all -1 before and after.
Component extract(const Graph& whole, const idx* vertex, idx n, std::vector<idx>& local);

// Makes one Component for each large connected component; small ones are combined into Components of at most `leaf`
// vertices, with hierarchies that hold only their sizes. `all` is 0 .. n-1 and must outlive them. Cost: O(n + entries).
std::vector<Component> connected_components(const Graph& whole, const idx* all, idx leaf, std::uint64_t seed);

// Makes the children of `component` on sides 0 and 1. With `inherit`, the children also get their part of the coarser
// levels; with `parallel`, the two may be made by different threads.
//
// A cluster with members on both sides, or in the separator, stays in a child with the weight of its members there and
// keeps its edges, of which some may have no counterpart in the finer level: such edges can cost quality near the
// boundary, but a partition of the coarse level is still one of the finer level. Cost: O(entries), a few times cheaper
// than coarsening again.
void split(Workspace& ws, const Component& component, const Partition& part, bool inherit, bool parallel,
           Component child[2]);

}  // namespace gs::nd
