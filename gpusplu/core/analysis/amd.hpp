// Approximate minimum degree ordering.
#pragma once
#include <optional>
#include <vector>

#include "analysis/column_counts.hpp"

namespace gs {

// Fill-reducing ordering of a symmetric pattern (both triangles present; a diagonal is ignored). Returns the gather
// permutation in elimination order: graph[perm][:, perm] has a sparse Cholesky factor. Deterministic. `size` (out): of
// that factor, if known; rows so dense that they were left out are not counted. Cost: O(nnz * n) in the worst case,
// close to O(nnz) in practice.
std::vector<idx> amd(PatternView graph, std::optional<FactorSize>* size = nullptr);

}  // namespace gs
