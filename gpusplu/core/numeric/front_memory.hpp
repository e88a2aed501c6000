// Memory of contribution blocks of a multifrontal factorization.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/kept_memory.hpp"
#include "base/raw_vector.hpp"

namespace gs {

// Allocates blocks of any size from one range of address space, each at the lowest offset where it fits. Freed blocks
// merge with their neighbours, so that the pages touched are little more than the peak demand. The pages are kept from
// one refactorization to the next, and some of them for the next arena. Thread-safe.
class BlockArena {
 public:
  ~BlockArena() {
    note_touched();
    give_space(space_);
  }

  // Returns null if the block does not fit.
  void* take(std::size_t bytes, std::size_t size) {
    std::lock_guard lock(mutex_);
    if (!space_.start && !reserve(size)) return nullptr;
    const std::size_t rounded = round_up(bytes);
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
      if (hole->size < rounded) continue;
      const std::size_t place = hole->place;
      hole->place += rounded, hole->size -= rounded;
      if (hole->size == 0) holes_.erase(hole);
      used_ = std::max(used_, place + rounded);
      return space_.start + place;
    }
    return nullptr;
  }

  // False if the block is not from this arena.
  bool give(void* p, std::size_t bytes) noexcept {
    std::lock_guard lock(mutex_);
    const std::size_t place = (std::uintptr_t)p - (std::uintptr_t)space_.start, rounded = round_up(bytes);
    if (!space_.start || place >= space_.size) return false;
    const auto next = std::lower_bound(holes_.begin(), holes_.end(), place,
                                       [](const Hole& hole, std::size_t place) { return hole.place < place; });
    const bool joins_next = next != holes_.end() && next->place == place + rounded;
    const bool joins_last = next != holes_.begin() && next[-1].place + next[-1].size == place;
    if (joins_last) {
      next[-1].size += rounded + (joins_next ? next->size : 0);
      if (joins_next) holes_.erase(next);
    } else if (joins_next) {
      next->place = place, next->size += rounded;
    } else {
      holes_.insert(next, {place, rounded});  // never reallocates: there is at most one more hole than blocks
    }
    return true;
  }

  // Requires that no block is in use. Pages that another factor touched and this one does not use go back to the
  // system.
  void start_again() noexcept {
    note_touched();
    give_pages_from(space_, used_);
  }

  std::size_t bytes() const { return used_; }

 private:
  struct Hole {
    std::size_t place, size;
  };

  static std::size_t round_up(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  void note_touched() { space_.touched = std::max(space_.touched, used_); }

  bool reserve(std::size_t size) {
    space_ = take_space(size);
    if (!space_.start) return false;
    holes_.reserve(space_.size / kSmallestLarge + 2);
    holes_.assign(1, {0, space_.size});
    return true;
  }

 public:
  static constexpr std::size_t kSmallestLarge = std::size_t(64) << 10;  // blocks are larger

 private:
  std::mutex mutex_;
  AddressSpace space_;
  std::size_t used_ = 0;
  std::vector<Hole> holes_;  // by place
};

// Small blocks of one thread, cut from slabs, from free lists by size class, last in first out, so that they stay in
// the cache. A block may be returned to the pool of another thread. Therefore, when all blocks are back, each pool
// restarts with the slabs that it cut itself; otherwise pools that receive blocks would grow without bound.
class BlockPool {
 public:
  static constexpr std::size_t kLargest = BlockArena::kSmallestLarge;

  void* take(std::size_t bytes) {
    const auto [size_class, rounded] = round_up(bytes);
    if (Block* block = free_[size_class]) {
      free_[size_class] = block->next;
      return block;
    }
    if (slab_left_ < rounded) {
      if (n_cut_ == slabs_.size()) slabs_.emplace_back(Memory().allocate(kSlab));
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

// Blocks of the fronts that several threads factor. The largest blocks are separate mappings, returned to the system as
// soon as they are freed.
class BlockMemory {
 public:
  void prepare(int threads) {
    if ((int)pools_.size() < threads) pools_.resize(threads);
  }

  void* take(int rank, std::size_t bytes) {
    if (bytes <= BlockPool::kLargest) return pools_[rank].take(bytes);
    if (bytes <= kLargest)
      if (void* p = arena_.take(bytes, std::min(pools_.size(), kMostArenas) * kArena)) return p;
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    madvise(p, bytes, MADV_HUGEPAGE);  // faults of small pages take a fifth of a refactorization with large fronts
#endif
    return p;
  }

  void give(int rank, void* p, std::size_t bytes) noexcept {
    if (bytes <= BlockPool::kLargest) pools_[rank].give(p, bytes);
    else if (!arena_.give(p, bytes)) munmap(p, bytes);
  }

  // Requires that no block is in use.
  void start_again() noexcept {
    for (BlockPool& pool : pools_) pool.start_again();
    arena_.start_again();
  }

  std::size_t bytes() const {
    std::size_t bytes = arena_.bytes();
    for (const BlockPool& pool : pools_) bytes += pool.bytes();
    return bytes;
  }

 private:
  static constexpr std::size_t kLargest = std::size_t(4) << 20, kArena = 4 * kLargest, kMostArenas = 16;

  std::vector<BlockPool> pools_;  // per thread
  BlockArena arena_;
};

}  // namespace gs
