// The patterns of L and U for an unsymmetric matrix with all pivots on the diagonal.
#pragma once
#include <optional>
#include "base/types.hpp"

namespace gs {

struct LuPattern {
  Pattern L, U;      // sorted columns; L starts with its unit diagonal, U ends with its diagonal
  double flops = 0;  // multiply-adds counted as 2 [flop]
};

// For B = A[row_perm][:, col_perm]; a diagonal entry that B lacks is taken as present.
// Column j of the factors is the set of vertices reached from the entries of B's column j in the graph of the columns
// of L so far (Gilbert and Peierls, SIAM J. Sci. Stat. Comput. 9 (1988)); columns of L are searched only up to the
// first row j that is in U's row as well (symmetric pruning: Eisenstat and Liu, SIAM J. Matrix Anal. Appl. 13 (1992)).
// Cost: at most proportional to the flops, far less with pruning; plus sorting the columns.
LuPattern lu_pattern(PatternView A, const idx* inverse_row_perm, const idx* col_perm);

// ---- Matrices that are best left in their own order: narrow staircases, as in boundary value problems

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
