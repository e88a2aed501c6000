// Consecutive parts of a range, given by their first indices.
#pragma once
#include <algorithm>
#include <vector>

#include "base/types.hpp"

namespace gs {

// The part of each index below n; part k is begin[k] .. begin[k + 1] - 1.
inline std::vector<idx> part_of_each(const std::vector<idx>& begin, idx n) {
  std::vector<idx> part(n);
  for (std::size_t k = 0; k + 1 < begin.size(); k++)
    std::fill(part.begin() + begin[k], part.begin() + begin[k + 1], (idx)k);
  return part;
}

}  // namespace gs
