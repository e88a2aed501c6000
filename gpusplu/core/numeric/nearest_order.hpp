// L in the order of columns that a caller asked for, from the order that fronts eliminate them in.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

// The order of pivots nearest to the wanted one in which L stays lower triangular: new pivot k is old pivot order[k].
// wanted[k] is where old pivot k is wanted, no two alike. Where joined[k], old pivots k and k + 1 are a block of D and
// stay together, at the first of their places. L is lower triangular with its diagonal, in compressed columns.
//
// The smallest order by `wanted` of all that L allows, pivot by pivot; so the wanted one itself wherever L is lower
// triangular in it, as it is without exchanges: fronts are eliminated in a postorder of the elimination tree, which any
// order of its own columns is equivalent to (Liu, The role of elimination trees in sparse factorization, SIAM J. Matrix
// Anal. Appl. 11 (1990), section 6). Cost: O(nnz(L) + n log n).
std::vector<idx> nearest_order(PatternView L, const std::vector<idx>& wanted, const std::vector<char>& joined);

// P L P^T, of an order as `nearest_order` has it.
template <class T> Matrix<T> in_order(const Matrix<T>& L, const std::vector<idx>& order);

}  // namespace gs
