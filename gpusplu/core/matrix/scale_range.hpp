// The least and the largest of the factors that rows or columns are multiplied by.
#pragma once
#include <vector>

namespace gs {

struct ScaleRange {
  double least = 1, largest = 1;
};
ScaleRange range_of(const std::vector<double>& scale);

}  // namespace gs
