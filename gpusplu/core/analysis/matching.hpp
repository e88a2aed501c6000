// Maximum product matching with row and column scaling.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

struct Matching {
  idx structural_rank = 0;
  std::vector<idx> row_of_col;               // row matched to column j, -1 if none
  std::vector<double> row_scale, col_scale;  // powers of two
};

// Permutation that maximizes the product of the moduli of the matched entries, and the scaling that comes with it:
// matched entries get a modulus in [0.5, 2] (on matrices that are hard to match, [0.25, 2]: a product that is merely
// large), all others at most 2. Stored zeros do not count as entries. Structurally singular: a matching of maximum
// cardinality, and no scaling (all ones). Deterministic.
// Cost: O(nnz) if the diagonal is the answer, O(n nnz log n) in the worst case.
template <class T> Matching max_product_matching(PatternView A, const T* values);

}  // namespace gs
