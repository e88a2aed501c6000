// Nested dissection ordering.
#pragma once
#include <functional>
#include <vector>

#include "base/types.hpp"

namespace gs {

// A fill-reducing order of a symmetric pattern (both triangles; a diagonal is tolerated): perm[new] = old. Does not
// depend on the number of threads. Cost: O(nnz log n).
// try_degree: called early, by some thread, unless minimum degree would certainly cause more flops. That is so where it
// does by far for a part of the graph, since its disadvantage grows with the graph.
std::vector<idx> nested_dissection(PatternView graph, const std::function<void()>& try_degree = {});

}  // namespace gs
