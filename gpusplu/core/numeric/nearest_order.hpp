// L in the order of columns that a caller requested, from the order in which fronts eliminate them.
#pragma once
#include <vector>

#include "base/scalars.hpp"

namespace gs {

// The order of pivots nearest to the wanted one in which L stays lower triangular: new pivot k is old pivot order[k].
// wanted[k] is the wanted position of old pivot k, all distinct. Where joined[k], old pivots k and k + 1 form a block
// of D and stay together, at the smaller of their positions. L is lower triangular with its diagonal, in compressed
// columns.
//
// Returns the smallest order by `wanted` of all that L allows, pivot by pivot; this is the wanted order itself if L is
// lower triangular in it, which holds without exchanges: fronts are eliminated in a postorder of the elimination tree,
// which is equivalent to any order of its own columns (Liu, The role of elimination trees in sparse factorization, SIAM
// J. Matrix Anal. Appl. 11 (1990), section 6). Cost: O(nnz(L) + n log n).
std::vector<idx> nearest_order(PatternView L, const std::vector<idx>& wanted, const std::vector<char>& joined);

// P L P^T, with an order as returned by `nearest_order`.
AnyMatrix in_order(const AnyMatrix& L, const std::vector<idx>& order);

}  // namespace gs
