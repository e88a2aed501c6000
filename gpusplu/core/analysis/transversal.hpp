// Maximum transversal (maximum cardinality matching of rows and columns) and structural rank.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

// row_of_col[j] is the row matched to column j, -1 where there is none. Every stored entry counts. Deterministic.
// Cost: O(n nnz) in the worst case, close to O(n + nnz) in practice.
std::vector<idx> maximum_transversal(PatternView A);

// Size of a maximum transversal.
idx structural_rank(PatternView A);

}  // namespace gs
