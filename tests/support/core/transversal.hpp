// Maximum transversal: a matching of rows and columns of maximum cardinality, by the search that the maximum product
// matching uses (analysis/augmenting_paths.hpp), here with every stored entry admissible.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

// row_of_col[j] is the row matched to column j, -1 where there is none. Deterministic.
// Cost: O(n nnz) in the worst case, close to O(n + nnz) in practice.
std::vector<idx> maximum_transversal(PatternView A);

}  // namespace gs
