// Nested dissection ordering.
#pragma once
#include <functional>
#include <vector>

#include "base/types.hpp"

namespace gs {

// Called with the flops of minimum degree over those of dissection in a part of the graph, and with the latter for each
// vertex of the part; zeros if they are not known.
using Compared = std::function<void(double ratio, double flops)>;

// A fill-reducing order of a symmetric pattern (both triangles; a diagonal is tolerated): perm[new] = old. Does not
// depend on the number of threads. Some thread calls `compared` early. Cost: O(nnz log n).
std::vector<idx> nested_dissection(PatternView graph, const Compared& compared = {});

}  // namespace gs
