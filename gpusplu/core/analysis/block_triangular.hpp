// Block upper triangular form.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

struct BlockTriangular {
  std::vector<idx> perm;       // gather, for the columns and for the rows of A[row_of_col]; ascending in a block
  std::vector<idx> block_ptr;  // block b is perm[block_ptr[b]] .. perm[block_ptr[b+1]-1]
};

// Strongly connected components of B = A[row_of_col], ordered so that B[perm][:, perm] is block upper triangular.
// row_of_col: a permutation, null for the identity. Cost: O(n + nnz).
BlockTriangular block_triangular(PatternView A, const idx* row_of_col);

// Whether A is triangular in some order of its rows and of its columns. Cost: O(n), or O(n + nnz) where a column has a
// single entry.
bool is_triangular(PatternView A);

}  // namespace gs
