// Memory of contribution blocks of a multifrontal factorization.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
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
  static constexpr int kClasses = 41;  // of sizes up to kLargest

  // Four classes per octave, from 64 bytes on: the class of a size, and the bytes of its blocks.
  static std::pair<int, std::size_t> round_up(std::size_t bytes) {
    if (bytes <= 64) return {0, 64};
    const int octave = 63 - __builtin_clzll(bytes - 1);  // 2^octave < bytes <= 2^(octave+1)
    const std::size_t step = std::size_t(1) << (octave - 2), steps = (bytes + step - 1) / step;  // 5 .. 8
    return {(octave - 6) * 4 + (int)steps - 4, steps * step};
  }

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

  std::array<Block*, kClasses> free_{};
  std::vector<Slab> slabs_;
  std::byte* slab_next_ = nullptr;
  std::size_t slab_left_ = 0, n_cut_ = 0;  // n_cut_: slabs that blocks have been cut from
  std::size_t touched_ = 0;                // before the last start_again()
};

// Places of blocks in a range of addresses: the lowest gap that is large enough, as on a stack, but in any order. Pages
// of freed blocks stay resident, for later blocks, until the range has more resident bytes than a limit: gaps between
// blocks of very different sizes would need half as much memory as the blocks.
class BlockPlaces {
 public:
  static constexpr std::size_t kNone = SIZE_MAX;

  explicit BlockPlaces(std::size_t most_resident = kNone) : most_resident_(most_resident) {}

  // Adds addresses from `begin` on, which is above all others and does not touch them.
  void extend(std::size_t begin, std::size_t size) {
    make_room();
    gaps_.push_back({begin, begin + size, false});
  }

  // kNone if no gap is large enough. Calls drop(begin, end) for gaps whose pages are to be given back to the system.
  template <class Drop> std::size_t take(std::size_t bytes, Drop&& drop) {
    make_room();
    auto first = gaps_.begin(), last = first;  // adjacent gaps: resident ones and others
    for (; last != gaps_.end() && last->end - first->begin < bytes; ++last)
      if (last + 1 != gaps_.end() && last[1].begin > last->end) first = last + 1;
    if (last == gaps_.end()) return kNone;
    const std::size_t place = first->begin, end = place + bytes;
    for (auto gap = first; gap <= last; ++gap)
      if (!gap->is_resident) resident_ += std::min(end, gap->end) - gap->begin;
    last->begin = end, n_blocks_++;
    gaps_.erase(first, last->begin == last->end ? last + 1 : last);
    for (auto gap = gaps_.rbegin(); resident_ > most_resident_ && gap != gaps_.rend(); ++gap)
      if (gap->is_resident && gap->end - gap->begin >= kLeastDropped) {
        drop(gap->begin, gap->end);
        resident_ -= gap->end - gap->begin, gap->is_resident = false;
      }
    most_ = std::max(most_, resident_);
    return place;
  }

  void give(std::size_t place, std::size_t bytes) noexcept {
    auto next = std::find_if(gaps_.begin(), gaps_.end(), [&](Gap g) { return g.begin > place; });
    const bool joins_next = next != gaps_.end() && next->begin == place + bytes && next->is_resident;
    const bool joins_last = next != gaps_.begin() && (next - 1)->end == place && (next - 1)->is_resident;
    n_blocks_--;
    if (joins_last && joins_next) (next - 1)->end = next->end, gaps_.erase(next);
    else if (joins_last) (next - 1)->end += bytes;
    else if (joins_next) next->begin = place;
    else gaps_.insert(next, {place, place + bytes, true});
  }

  std::size_t most_resident() const { return most_; }  // bytes, so far

 private:
  static constexpr std::size_t kLeastDropped = std::size_t(256) << 10;

  struct Gap {
    std::size_t begin, end;
    bool is_resident;
  };

  // Each block adds at most one gap when it is given back, so that give() need not allocate.
  void make_room() {
    const std::size_t most = gaps_.size() + n_blocks_ + 2;
    if (gaps_.capacity() < most) gaps_.reserve(2 * most);
  }

  std::vector<Gap> gaps_;  // ascending
  std::size_t n_blocks_ = 0, most_resident_, resident_ = 0, most_ = 0;
};

// Memory of contribution blocks. Small ones are in a pool of each thread. The others are in one range of all threads,
// so that they reuse resident pages whatever their sizes; pages above the highest place are never touched.
class BlockMemory {
 public:
  static bool is_small(std::size_t bytes) { return bytes <= BlockPool::kLargest; }
  // Of the place of a larger block.
  static std::size_t rounded(std::size_t bytes) { return (bytes + Memory::line - 1) / Memory::line * Memory::line; }

  // `largest`: bytes of the largest block. In trees of two- and three-dimensional meshes up to 4 times as many are in
  // use at the same time on one thread, and up to 8 times as many on several; if there are more, the range grows.
  // `most_resident`: bytes of larger blocks and gaps between them. Requires that no block is in use.
  void prepare(int threads, std::size_t largest, std::size_t most_resident = BlockPlaces::kNone) {
    if ((int)pools_.size() < threads) pools_.resize(threads);
    expected_ = largest * (threads > 1 ? 8 : 4);
    places_ = BlockPlaces(most_resident);
  }

  void* take(int rank, std::size_t bytes) {
    if (is_small(bytes)) return pools_[rank].take(bytes);
    bytes = rounded(bytes);
    std::lock_guard lock(mutex_);
    const auto drop = [&](std::size_t begin, std::size_t end) { drop_pages(address(begin), end - begin); };
    std::size_t place = places_.take(bytes, drop);
    if (place == BlockPlaces::kNone) {
      const std::size_t size = std::max(bytes, chunks_.empty() ? expected_ : expected_ / 4);
      const std::size_t begin = chunks_.empty() ? 0 : chunks_.back().begin + chunks_.back().size + Memory::line;
      chunks_.push_back({begin, size, Slab(Memory().allocate(size), {size})});
      places_.extend(begin, size);
      place = places_.take(bytes, drop);
    }
    return address(place);
  }

  void give(int rank, void* p, std::size_t bytes) noexcept {
    if (is_small(bytes)) return pools_[rank].give(p, bytes);
    std::lock_guard lock(mutex_);
    const std::less<void*> before;
    for (const Chunk& chunk : chunks_)
      if (std::byte* const start = chunk.memory.get(); !before(p, start) && before(p, start + chunk.size))
        return places_.give(chunk.begin + (static_cast<std::byte*>(p) - start), rounded(bytes));
  }

  // Requires that no block is in use.
  void start_again() noexcept {
    for (BlockPool& pool : pools_) pool.start_again();
    chunks_.clear();
    places_ = {};
  }

  std::size_t bytes() const {
    std::size_t bytes = 0;
    for (const BlockPool& pool : pools_) bytes += pool.bytes();
    return bytes;
  }

 private:
  using Memory = RawAllocator<std::byte>;
  struct Free {
    std::size_t size;
    void operator()(std::byte* memory) const { Memory().deallocate(memory, size); }
  };
  using Slab = std::unique_ptr<std::byte[], Free>;
  struct Chunk {
    std::size_t begin, size;
    Slab memory;
  };

  std::byte* address(std::size_t place) const {
    const auto chunk = std::find_if(chunks_.rbegin(), chunks_.rend(), [&](const Chunk& c) { return c.begin <= place; });
    return chunk->memory.get() + (place - chunk->begin);
  }

  std::vector<BlockPool> pools_;  // per thread
  std::mutex mutex_;              // guards what follows
  std::size_t expected_ = 0;
  BlockPlaces places_;
  std::vector<Chunk> chunks_;
};

}  // namespace gs
