// Matrices that are best left in their own order: narrow staircases, as in boundary value problems.
#pragma once
#include <optional>

#include "base/types.hpp"

namespace gs {

// Upper bounds of the storage and the work of LU with pivoting among all rows, for any choice of pivots: entries of L,
// the diagonal included, and of U, and multiply-adds.
struct OwnOrderSize {
  off lower = 0, upper = 0;
  double flops = 0;
};

// The size for A in its own order; nothing where L and U may have more entries than `most` together, or A is
// structurally singular. Source: George, Ng, "Symbolic factorization for sparse Gaussian elimination with partial
// pivoting", SIAM J. Sci. Stat. Comput. 8(6), 1987, sec. 3. Cost: O(nnz + most).
std::optional<OwnOrderSize> own_order_size(PatternView A, off most);

// Whether entries are as near to the diagonal as those of a band that is not much wider than its contents: then no
// other order has to be considered.
bool is_near_diagonal(PatternView A);

// Whether the largest entries of rows are of about the same size, so that pivots can be compared without scales.
template <class T> bool rows_are_alike(PatternView A, const T* values);

}  // namespace gs
