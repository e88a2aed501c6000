// Memory of contribution blocks of a multifrontal factorization.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/raw_vector.hpp"

namespace gs {

// Small blocks of one thread, cut from slabs, from free lists by size class, last in first out, so that they stay in
// the cache. A block may be returned to the pool of another thread. Therefore, when all blocks are back, each pool
// restarts with the slabs that it cut itself; otherwise pools that receive blocks would grow without bound.
class BlockPool {
 public:
  static constexpr std::size_t kLargest = std::size_t(64) << 10;

  void* take(std::size_t bytes) {
    const auto [size_class, rounded] = round_up(bytes);
    if (Block* block = free_[size_class]) {
      free_[size_class] = block->next;
      return block;
    }
    if (slab_left_ < rounded) {
      if (n_cut_ == slabs_.size()) {
        Slab slab(Memory().allocate(kSlab));  // freed if the vector cannot grow
        slabs_.push_back(std::move(slab));
      }
      slab_next_ = slabs_[n_cut_++].get(), slab_left_ = kSlab;
    }
    void* block = slab_next_;
    slab_next_ += rounded, slab_left_ -= rounded;
    return block;
  }

  void give(void* p, std::size_t bytes) noexcept {
    const int size_class = round_up(bytes).first;
    free_[size_class] = new (p) Block{free_[size_class]};
  }

  // Requires that no block is in use of any pool that exchanges blocks with this one.
  void start_again() noexcept {
    touched_ = bytes();
    free_.fill(nullptr);
    slab_left_ = 0, n_cut_ = 0;
  }

  // Of the slabs, as far as blocks have been cut from them: the system provides the remaining pages when they are used.
  std::size_t bytes() const { return std::max(touched_, n_cut_ * kSlab - slab_left_); }

 private:
  struct Block {
    Block* next;
  };
  using Memory = RawAllocator<std::byte>;
  static constexpr std::size_t kSlab = (std::size_t(256) << 10) - Memory::line;
  struct Free {
    void operator()(std::byte* slab) const { Memory().deallocate(slab, kSlab); }
  };
  // Not a vector: GCC at -O1, as bindings are compiled, destroys each byte of one in an empty loop, 60% of the time of
  // a small Cholesky factorization.
  using Slab = std::unique_ptr<std::byte[], Free>;

  // Four classes per octave, from 64 bytes on.
  static std::pair<int, std::size_t> round_up(std::size_t bytes) {
    if (bytes <= 64) return {0, 64};
    const int octave = 63 - __builtin_clzll(bytes - 1);  // 2^octave < bytes <= 2^(octave+1)
    const std::size_t step = std::size_t(1) << (octave - 2), steps = (bytes + step - 1) / step;  // 5 .. 8
    return {(octave - 6) * 4 + (int)steps - 4, steps * step};
  }

  std::array<Block*, 41> free_{};  // up to 64 KiB
  std::vector<Slab> slabs_;
  std::byte* slab_next_ = nullptr;
  std::size_t slab_left_ = 0, n_cut_ = 0;  // n_cut_: slabs that blocks have been cut from
  std::size_t touched_ = 0;                // before the last start_again()
};

// Blocks of the fronts that several threads factor. Large ones are arrays like others.
class BlockMemory {
 public:
  void prepare(int threads) {
    if ((int)pools_.size() < threads) pools_.resize(threads);
  }

  void* take(int rank, std::size_t bytes) {
    return bytes <= BlockPool::kLargest ? pools_[rank].take(bytes) : RawAllocator<std::byte>().allocate(bytes);
  }

  void give(int rank, void* p, std::size_t bytes) noexcept {
    if (bytes <= BlockPool::kLargest) pools_[rank].give(p, bytes);
    else RawAllocator<std::byte>().deallocate(static_cast<std::byte*>(p), bytes);
  }

  // Requires that no block is in use.
  void start_again() noexcept {
    for (BlockPool& pool : pools_) pool.start_again();
  }

  std::size_t bytes() const {
    std::size_t bytes = 0;
    for (const BlockPool& pool : pools_) bytes += pool.bytes();
    return bytes;
  }

 private:
  std::vector<BlockPool> pools_;  // per thread
};

}  // namespace gs
