// Approximate minimum degree ordering.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

// Fill-reducing ordering of a symmetric pattern (both triangles present; a diagonal is ignored). Returns the gather
// permutation in elimination order: graph[perm][:, perm] has a sparse Cholesky factor. Deterministic.
// Cost: O(nnz * n) in the worst case, close to O(nnz) on what is met in practice.
std::vector<idx> amd(PatternView graph);

}  // namespace gs
