// Columns that leave their front for that of its parent.
#pragma once
#include <vector>

#include "analysis/symbolic.hpp"

namespace gs {

// The analysis with the columns `columns`, in A's numbering, eliminated after those of the parent of their front, where
// they meet the columns that they may need for pivots; those of roots stay. So what other solvers delay while they
// factor is a property of the analysis, and the next values find it there. Cost: that of a structure, without an
// ordering.
Symbolic delay_columns(const Symbolic& symbolic, const std::vector<idx>& columns);

}  // namespace gs
