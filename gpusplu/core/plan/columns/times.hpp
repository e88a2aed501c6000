// When the columns of a plan are finished by warps that wait for each other (kernels/columns/sflu.cuh), predicted.
//
// A warp takes the updates of its column k by ascending j with U(j, k), each when column j is finished; that by column
// j takes update + slice ceil(|L(:, j)| / 32) seconds, and the pivot with the division and all else `column`.
#pragma once
#include <vector>

#include "base/types.hpp"
#include "plan/columns/groups.hpp"
#include "shared/costs.hpp"

namespace gs::gpu {

struct ColumnCosts {
  double column = 0, update = 0, slice = 0, long_column = 0, long_depth = 0;  // [s]
};

struct ColumnTimes {
  std::vector<double> finish;  // of every column [s], if there are warps enough
  std::vector<double> last;    // the latest of these among the column and all that L or U orders before it
  std::vector<idx> depth;      // the most columns i < .. < j that end with it, each in the row of L of the next
};

// `level`: of every column, to determine which are long; null: none is.
ColumnTimes column_times(const ColumnPattern& pattern, const idx* level, const ColumnCosts& costs,
                         const LongColumnCosts& longest);

// The most that a column of the trailing block takes, `entry` seconds for each of its entries and `term` for each
// multiply-add of updates by columns before the block, which has the columns of positions p .. n - 1.
double longest_trailing_column(const ColumnPattern& pattern, const off* position, idx p, double entry, double term);

}  // namespace gs::gpu
