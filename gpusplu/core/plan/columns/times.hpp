// When the columns of a plan are finished by warps that wait for each other (kernels/sflu.cu), predicted.
//
// A warp takes the updates of its column k by ascending j with U(j, k), each when column j is finished; that by column
// j takes update + slice ceil(|L(:, j)| / 32) seconds, and the pivot with the division and all else `column`.
#pragma once
#include <vector>

#include "base/types.hpp"
#include "plan/columns/groups.hpp"

namespace gs::gpu {

struct ColumnCosts {
  double column = 0, update = 0, slice = 0;  // [s]
};

struct ColumnTimes {
  std::vector<double> finish;  // of every column [s], if there are warps enough
  std::vector<double> last;    // the latest of these among it and all that L or U makes come before it
};

ColumnTimes column_times(const ColumnPattern& pattern, const ColumnCosts& costs);

}  // namespace gs::gpu
