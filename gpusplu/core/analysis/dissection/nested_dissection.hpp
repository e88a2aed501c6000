// Nested dissection ordering.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

struct DissectionOptions {
  int threads = 0;  // at most; 0: num_threads()
  std::uint64_t seed = 1;
};

// A fill-reducing order of a symmetric pattern (both triangles; a diagonal is tolerated): perm[new] = old. Depends on
// the pattern and the seed only, not on the threads. Cost: O(nnz log n).
std::vector<idx> nested_dissection(PatternView graph, const DissectionOptions& options = {});

}  // namespace gs
