// Connected components as the pieces that nested dissection begins with.
#pragma once
#include "analysis/dissection/split.hpp"

namespace gs::nd {

// A piece for each large component; small ones are put together into pieces of at most `leaf` vertices, whose
// hierarchies hold no more than their sizes. They lie in `memory`; `all` is 0 .. n-1 and stays alive as long as they.
// Cost: O(n + entries).
std::vector<Component> connected_components(const Graph& whole, const idx* all, idx leaf, std::uint64_t seed,
                                            Arena& memory);

}  // namespace gs::nd
