// Memory of a multifrontal factorization: the arena of the panels, and contribution blocks.
#pragma once
#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace gs {

// Uninitialized array of plain numbers. Nothing is touched: pages come when fronts are assembled into them, near the
// thread that does it. Large arrays ask for huge pages, which saves most page faults of a first factorization.
template <class T> class RawArray {
 public:
  RawArray() = default;
  explicit RawArray(std::size_t size) : size_(size) {
    constexpr std::size_t huge = std::size_t(2) << 20;
    const std::size_t align = bytes() >= 4 * huge ? huge : 64;
    if (size == 0) return;
    data_.reset(static_cast<T*>(std::aligned_alloc(align, (bytes() + align - 1) / align * align)));
    if (!data_) throw std::bad_alloc();
    if (align == huge) madvise(data_.get(), bytes(), MADV_HUGEPAGE);
  }
  T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::size_t size_ = 0;
  std::unique_ptr<T, Free> data_;
};

// Contribution blocks of one thread. Small ones come from free lists by size class, last in first out, so that they
// stay in the cache from one refactorization to the next; large ones from malloc, and go back as soon as the parent has
// taken them. A block may be given to another thread's pool than it was taken from.
class BlockPool {
 public:
  void* take(std::size_t bytes) {
    if (bytes > kLargest) return checked(std::malloc(bytes));
    const auto [size_class, rounded] = round_up(bytes);
    if (Block* block = free_[size_class]) {
      free_[size_class] = block->next;
      return block;
    }
    if (slab_left_ < rounded) {
      slabs_.emplace_back();  // first, so that a failure below loses nothing
      slabs_.back().reset(static_cast<std::byte*>(checked(std::aligned_alloc(64, kSlab))));
      slab_next_ = slabs_.back().get(), slab_left_ = kSlab;
    }
    void* block = slab_next_;
    slab_next_ += rounded, slab_left_ -= rounded;
    return block;
  }

  void give(void* p, std::size_t bytes) noexcept {
    if (bytes > kLargest) return std::free(p);
    const int size_class = round_up(bytes).first;
    free_[size_class] = new (p) Block{free_[size_class]};
  }

  std::size_t bytes() const { return slabs_.size() * kSlab; }

 private:
  struct Block {
    Block* next;
  };
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  static constexpr std::size_t kLargest = std::size_t(64) << 10;
  static constexpr std::size_t kSlab = std::size_t(256) << 10;

  static void* checked(void* p) {
    if (!p) throw std::bad_alloc();
    return p;
  }
  // Four classes an octave from 64 bytes on.
  static std::pair<int, std::size_t> round_up(std::size_t bytes) {
    if (bytes <= 64) return {0, 64};
    const int octave = 63 - __builtin_clzll(bytes - 1);  // 2^octave < bytes <= 2^(octave+1)
    const std::size_t step = std::size_t(1) << (octave - 2), steps = (bytes + step - 1) / step;  // 5 .. 8
    return {(octave - 6) * 4 + (int)steps - 4, steps * step};
  }

  std::array<Block*, 48> free_{};
  std::vector<std::unique_ptr<std::byte, Free>> slabs_;
  std::byte* slab_next_ = nullptr;
  std::size_t slab_left_ = 0;
};

}  // namespace gs
