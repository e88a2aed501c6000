// Vectors whose elements are not cleared before they are written: large arrays meet memory first in the threads that
// fill them.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace gs {

// Memory that nobody has touched, for std::free. It starts with a cache line, so that a row of 8 doubles never
// straddles two; large pieces ask for huge pages, which saves most page faults.
inline void* raw_bytes(std::size_t bytes) {
  constexpr std::size_t huge = std::size_t(2) << 20;
  const std::size_t align = bytes >= 4 * huge ? huge : 64;
  void* p = std::aligned_alloc(align, (bytes + align - 1) / align * align);
  if (!p) throw std::bad_alloc();
#ifdef __linux__
  if (align == huge) madvise(p, bytes, MADV_HUGEPAGE);  // advice only: failure is harmless
#endif
  return p;
}

struct FreeRaw {
  void operator()(void* p) const { std::free(p); }
};

template <class T> struct RawAllocator {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  using value_type = T;
  RawAllocator() = default;
  template <class U> RawAllocator(const RawAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(raw_bytes(n * sizeof(T))); }
  void deallocate(T* p, std::size_t) { std::free(p); }
  template <class U> void construct(U*) {}
  template <class U, class... Args> void construct(U* at, Args&&... args) {
    ::new ((void*)at) U{std::forward<Args>(args)...};
  }
  bool operator==(const RawAllocator&) const { return true; }
};
template <class T> using RawVector = std::vector<T, RawAllocator<T>>;

}  // namespace gs
