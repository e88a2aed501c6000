// Vectors with elements that are not cleared before they are written: the threads that fill a large array touch its
// pages first.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/kept_memory.hpp"

namespace gs {

// Memory starts at a cache line, so that a row of 8 doubles never straddles two. It is aligned by hand: blocks of
// aligned_alloc return to the system when they are freed, and their pages would fault again.
template <class T> struct RawAllocator {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  using value_type = T;
  static constexpr std::uintptr_t line = 64;
  RawAllocator() = default;
  template <class U> RawAllocator(const RawAllocator<U>&) {}

  T* allocate(std::size_t n) {
    void* start = take_memory(n * sizeof(T) + line);  // aligned for any scalar; a pointer fits before p
    if (!start) throw std::bad_alloc();
    auto** p = reinterpret_cast<void**>(((std::uintptr_t)start + line) / line * line);
    p[-1] = start;
    return reinterpret_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t n) { give_memory(reinterpret_cast<void**>(p)[-1], n * sizeof(T) + line); }

  template <class U> void construct(U*) {}
  template <class U, class... Args> void construct(U* at, Args&&... args) {
    ::new ((void*)at) U{std::forward<Args>(args)...};
  }
  bool operator==(const RawAllocator&) const { return true; }
};
template <class T> using RawVector = std::vector<T, RawAllocator<T>>;

// ---- Arrays of zeros with pages that are allocated on first use

template <class T> class ZeroedArray {  // starts at a cache line
 public:
  explicit ZeroedArray(std::ptrdiff_t size) : size_(size), memory_(std::calloc((size + 16) * sizeof(T), 1)) {
    if (!memory_) throw std::bad_alloc();
  }
  ZeroedArray(ZeroedArray&& other) noexcept : size_(other.size_), memory_(other.memory_) { other.memory_ = nullptr; }
  ~ZeroedArray() { std::free(memory_); }
  T* data() const { return reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(memory_) + 63) / 64 * 64); }
  std::ptrdiff_t size() const { return size_; }

 private:
  std::ptrdiff_t size_;
  void* memory_;
};

}  // namespace gs
