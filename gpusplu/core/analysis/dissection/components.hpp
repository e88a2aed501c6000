// Connected components, with which nested dissection begins.
#pragma once
#include "analysis/dissection/split.hpp"

namespace gs::nd {

// Makes one Component for each large connected component; small ones are combined into Components of at most `leaf`
// vertices, with hierarchies that hold only their sizes. The arrays lie in `memory`; `all` is 0 .. n-1 and must outlive
// them. Cost: O(n + entries).
std::vector<Component> connected_components(const Graph& whole, const idx* all, idx leaf, std::uint64_t seed,
                                            Arena& memory);

}  // namespace gs::nd
