// Columns that leave their front for that of its parent.
#pragma once
#include <vector>

#include "analysis/symbolic.hpp"

namespace gs {

// The analysis with the columns `columns`, in A's numbering, eliminated after those of the parent of their front,
// together with the columns that they may need for pivots; those of roots stay. Other solvers delay pivots while they
// factor; here delays are part of the analysis, which the next values reuse. Cost: that of a structure, without an
// ordering.
Symbolic delay_columns(const Symbolic& symbolic, const std::vector<idx>& columns);

}  // namespace gs
