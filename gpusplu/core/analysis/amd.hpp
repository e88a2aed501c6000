// Approximate minimum degree ordering.
#pragma once
#include <optional>
#include <vector>

#include "analysis/column_counts.hpp"

namespace gs {

// Fill-reducing ordering of a symmetric pattern (both triangles present; a diagonal is ignored). Returns the gather
// permutation in elimination order: graph[perm][:, perm] has a sparse Cholesky factor. Deterministic. `size` (out): of
// that factor, where it is known: rows so dense that they were left out are in no count. `parent` (out): its
// elimination tree, where most of that is known already; else it stays empty. Cost: O(nnz * n) in the worst case, close
// to O(nnz) on what is met in practice.
std::vector<idx> amd(PatternView graph, std::optional<FactorSize>* size = nullptr, std::vector<idx>* parent = nullptr);

}  // namespace gs
