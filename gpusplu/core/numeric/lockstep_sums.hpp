// Contributions of children as lists of single entries: fronts of circuits are so small that loops over the rows of a
// child end before a branch predictor learns their lengths. The lists omit children of more rows than
// `most_listed_rows`.
#pragma once
#include <vector>

#include "plan/lockstep/plan.hpp"

namespace gs {

constexpr int most_listed_rows = 12;

// Of front f, entries ptr[2 f] .. ptr[2 f + 1] - 1 go to its panels, and those up to ptr[2 f + 2] - 1 to its block:
// entry from[k] of the blocks' memory to entry to[k] of the target. Ordered by its children.
struct LockstepSums {
  std::vector<off> ptr;
  std::vector<idx> from, to;
};

// Throws std::length_error if blocks are too large for its indices.
LockstepSums make_lockstep_sums(const gpu::LockstepPlan& plan);

}  // namespace gs
