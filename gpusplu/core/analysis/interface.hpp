// The structure of a partial factorization: some unknowns, an interface, are not eliminated; the fronts of all others
// leave the Schur complement on the interface.
#pragma once
#include "analysis/symbolic.hpp"

namespace gs {

// The whole A, by an analysis for fronts of its interior: all unknowns but the `count` of `interface`, in ascending
// order, and count > 0. Fronts keep their columns, and get as further rows the rows of the interface that entries of
// their subtrees have, which comes last as one front, the parent of all roots; it is assembled and not eliminated.
// Where the interior is scaled, scales of the interface bring the entries between both to about 1.
// Cost: O(nnz(A) + rows of the interface in all fronts).
template <class T>
Symbolic with_interface(const Symbolic& interior, PatternView A, const T* values, const idx* interface, idx count);

}  // namespace gs
