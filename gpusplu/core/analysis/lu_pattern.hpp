// The patterns of L and U for an unsymmetric matrix with all pivots on the diagonal.
#pragma once
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

}  // namespace gs
