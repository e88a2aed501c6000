// Parts of a range that lie one behind the other, by where they begin.
#pragma once
#include <algorithm>
#include <vector>

#include "base/types.hpp"

namespace gs {

// Of each of the indices below n the part that it is in; part k is begin[k] .. begin[k + 1] - 1.
inline std::vector<idx> part_of_each(const std::vector<idx>& begin, idx n) {
  std::vector<idx> part(n);
  for (std::size_t k = 0; k + 1 < begin.size(); k++)
    std::fill(part.begin() + begin[k], part.begin() + begin[k + 1], (idx)k);
  return part;
}

}  // namespace gs
