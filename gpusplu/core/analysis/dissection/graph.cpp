#include "analysis/dissection/graph.hpp"

#include <algorithm>

#include "base/huge_pages.hpp"

namespace gs::nd {

std::byte* Arena::raw(std::size_t bytes) {
  constexpr std::size_t smallest = std::size_t(1) << 20;
  while (block_ < blocks_.size() && top_ + bytes > blocks_[block_].size()) {
    block_++, top_ = 0;
  }
  if (block_ == blocks_.size()) {
    const std::size_t last = blocks_.empty() ? smallest / 2 : blocks_.back().size();
    prefer_huge_pages(blocks_.emplace_back(std::max(bytes, 2 * last)));
  }
  std::byte* p = blocks_[block_].data() + top_;
  top_ += bytes;
  return p;
}

}  // namespace gs::nd
