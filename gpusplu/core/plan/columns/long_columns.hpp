// Columns with so many entries of U that one warp, which applies one update after the other, would hold up all others
// (kernels/columns/long_columns.cuh). A block works on such a column instead.
//
// Most of its updates come from the ends of branches and hardly depend on each other. Depth within the column: 0 for an
// entry that no update of the column reaches, else one more than the depth of the deepest entry of U with an update
// that reaches it. Shallow entries: those of U of at most some depth that few terms reach, all of them shallow. They
// are sums of terms L(i, j) U(j, k), as many at a time as a depth has. The contributions of shallow entries to all
// others are summed next. The other entries of U, often the end of a chain, take the rest one after the other, as in
// all columns.
#pragma once
#include <cstdint>
#include <vector>

#include "base/types.hpp"
#include "plan/columns/groups.hpp"
#include "shared/columns.hpp"
#include "shared/costs.hpp"

namespace gs::gpu {

struct LongColumns {
  std::vector<idx> column;  // ascending
  std::vector<LongColumn> parts;
  std::vector<std::int32_t> target;    // positions in their columns: shallow ones by depth, then others
  std::vector<std::int32_t> term_ptr;  // targets + 1
  std::vector<LongTerm> term;          // of a target: rows j ascending
  std::vector<std::int32_t> level, rest, shallow;
};

// Columns before p.n that a warp would still be processing when all their dependencies are finished. `level`: of every
// column, of the plan. Their terms are not more than `most_listed`, the capacity of lists of 8 bytes each.
std::vector<idx> choose_long_columns(const ColumnPattern& pattern, const idx* level, const LongColumnCosts& costs,
                                     off most_listed = 20'000'000);

// Parts and terms of these columns, ascending. Time: that of their multiply-adds.
LongColumns make_long_columns(const ColumnPattern& pattern, const std::vector<idx>& columns,
                              const LongColumnCosts& costs);

}  // namespace gs::gpu
