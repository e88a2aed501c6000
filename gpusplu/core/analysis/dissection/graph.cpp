#include "analysis/dissection/graph.hpp"

#include <algorithm>
#include <new>

namespace gs::nd {

std::byte* Arena::raw(std::size_t bytes) {
  constexpr std::size_t smallest = std::size_t(1) << 20;
  while (block_ < blocks_.size() && top_ + bytes > blocks_[block_].size()) {
    block_++, top_ = 0;
  }
  if (block_ == blocks_.size()) {
    const std::size_t last = blocks_.empty() ? smallest / 2 : blocks_.back().size();
    blocks_.emplace_back(std::max(bytes, 2 * last));
  }
  std::byte* p = blocks_[block_].data() + top_;
  top_ += bytes;
  return p;
}

void Zeros::reserve(idx n) {
  if (n <= size_) return;
  const idx size = std::max(n, (idx)std::min<off>(2 * (off)size_, INT32_MAX));
  size_ = 0;
  data_.reset();
  data_.reset(static_cast<idx*>(std::calloc((std::size_t)size, sizeof(idx))));
  if (!data_) throw std::bad_alloc();
  size_ = size;
}

}  // namespace gs::nd
