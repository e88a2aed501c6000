// Memory with blocks in it, each at the lowest place where it fits.
#pragma once
#include <algorithm>
#include <map>

#include "base/types.hpp"

namespace gs::gpu {

// Cost of `take`: the number of blocks.
class Gaps {
 public:
  off take(off size) {
    off begin = 0;
    for (const auto& [used, end] : used_) {
      if (used - begin >= size) break;
      begin = end;
    }
    if (size > 0) used_.emplace(begin, begin + size);
    top_ = std::max(top_, begin + size);
    return begin;
  }
  void give(off begin) { used_.erase(begin); }
  off top() const { return top_; }  // where the highest block has ended so far

 private:
  std::map<off, off> used_;  // ends by begins
  off top_ = 0;
};

}  // namespace gs::gpu
