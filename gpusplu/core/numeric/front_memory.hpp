// Memory of contribution blocks of a multifrontal factorization.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace gs {

// Memory that nobody has touched. Large pieces ask for huge pages, which saves most page faults.
inline void* raw_bytes(std::size_t bytes) {
  constexpr std::size_t huge = std::size_t(2) << 20;
  const std::size_t align = bytes >= 4 * huge ? huge : 64;
  void* p = std::aligned_alloc(align, (bytes + align - 1) / align * align);
  if (!p) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE  // Linux
  if (align == huge) madvise(p, bytes, MADV_HUGEPAGE);
#endif
  return p;
}

struct FreeRaw {
  void operator()(void* p) const { std::free(p); }
};

// Contribution blocks of one thread, from free lists by size class, last in first out, so that they stay in the cache
// and keep their pages from one refactorization to the next. Small blocks are cut from slabs; of larger ones at most
// kKept bytes are kept. The largest are pages of their own, huge ones where the system has them, that go back to it
// as soon as the parent has taken them. A block may be given to another thread's
// pool than it was taken from: so when all are back, pools start again with the slabs that they cut themselves, or
// those that others are given to would grow for ever.
class BlockPool {
 public:
  BlockPool() = default;
  BlockPool(BlockPool&& other) noexcept { *this = std::move(other); }
  BlockPool& operator=(BlockPool&& other) noexcept {
    std::swap(free_, other.free_), std::swap(slabs_, other.slabs_), std::swap(slab_next_, other.slab_next_);
    std::swap(slab_left_, other.slab_left_), std::swap(kept_, other.kept_), std::swap(n_cut_, other.n_cut_);
    return *this;
  }
  ~BlockPool() {
    for (int c = kSmallClasses; c < (int)free_.size(); c++)
      while (Block* block = free_[c]) free_[c] = block->next, std::free(block);
  }

  void* take(std::size_t bytes) {
    const auto [size_class, rounded] = round_up(bytes);
    if (size_class >= (int)free_.size()) {
      void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (p == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
      madvise(p, bytes, MADV_HUGEPAGE);
#endif
      return p;
    }
    if (Block* block = free_[size_class]) {
      free_[size_class] = block->next;
      if (size_class >= kSmallClasses) kept_ -= rounded;
      return block;
    }
    if (size_class >= kSmallClasses) return raw_bytes(rounded);
    if (slab_left_ < rounded) {
      if (n_cut_ == slabs_.size()) slabs_.push_back(Slab(static_cast<std::byte*>(raw_bytes(kSlab))));
      slab_next_ = slabs_[n_cut_++].get(), slab_left_ = kSlab;
    }
    void* block = slab_next_;
    slab_next_ += rounded, slab_left_ -= rounded;
    return block;
  }

  void give(void* p, std::size_t bytes) noexcept {
    const auto [size_class, rounded] = round_up(bytes);
    if (size_class >= (int)free_.size()) {
      munmap(p, bytes);
      return;
    }
    if (size_class >= kSmallClasses) {
      if (kept_ + rounded > kKept) return std::free(p);
      kept_ += rounded;
    }
    free_[size_class] = new (p) Block{free_[size_class]};
  }

  // No block of any pool that these give to or take from is in use.
  void start_again() noexcept {
    std::fill_n(free_.begin(), kSmallClasses, nullptr);
    slab_left_ = 0, n_cut_ = 0;
  }

  std::size_t bytes() const { return slabs_.size() * kSlab + kept_; }

 private:
  struct Block {
    Block* next;
  };
  using Slab = std::unique_ptr<std::byte, FreeRaw>;
  static constexpr std::size_t kSlab = std::size_t(256) << 10, kKept = std::size_t(16) << 20;
  static constexpr int kSmallClasses = 41;  // up to 64 KiB; all: up to 4 MiB

  // Four classes an octave from 64 bytes on.
  static std::pair<int, std::size_t> round_up(std::size_t bytes) {
    if (bytes <= 64) return {0, 64};
    const int octave = 63 - __builtin_clzll(bytes - 1);  // 2^octave < bytes <= 2^(octave+1)
    const std::size_t step = std::size_t(1) << (octave - 2), steps = (bytes + step - 1) / step;  // 5 .. 8
    return {(octave - 6) * 4 + (int)steps - 4, steps * step};
  }

  std::array<Block*, 65> free_{};
  std::vector<Slab> slabs_;
  std::byte* slab_next_ = nullptr;
  std::size_t slab_left_ = 0, kept_ = 0, n_cut_ = 0;  // n_cut_: slabs that blocks have been cut from
};

}  // namespace gs
