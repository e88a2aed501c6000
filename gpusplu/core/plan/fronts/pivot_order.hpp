// The order of the pivots inside the fronts of LDL^T. Kernels pivot inside a panel of a front only, so that columns
// that are a pivot of order 2 have to be in one panel.
#pragma once
#include <vector>

#include "analysis/symbolic.hpp"

namespace gs::gpu {

// The columns of a symbolic's supernodes in the order of their pivots, and the partner of each, itself where it has
// none. Columns go by their positions in the symbolic.
struct PivotOrder {
  std::vector<idx> columns, partner;
  explicit PivotOrder(const Symbolic& symbolic);
};

// Puts columns that are partners next to each other, the second after the first, and both into the same panel of PANEL
// columns: where the end of a panel would separate them, the last single column of that panel goes after them. There is
// one, because an even number of columns cannot consist of pairs and half of one.
void align_pairs(const std::vector<idx>& partner, std::vector<idx>& columns);

}  // namespace gs::gpu
