// The smallest and the largest scale of rows or columns.
#pragma once
#include <vector>

namespace gs {

struct ScaleRange {
  double least = 1, largest = 1;
};
ScaleRange range_of(const std::vector<double>& scale);

}  // namespace gs
