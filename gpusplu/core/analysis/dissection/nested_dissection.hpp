// Nested dissection ordering.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

// A fill-reducing order of a symmetric pattern (both triangles; a diagonal is tolerated): perm[new] = old. Does not
// depend on the number of threads. Cost: O(nnz log n).
std::vector<idx> nested_dissection(PatternView graph);

}  // namespace gs
