// Vectors that are not initialized.
#pragma once
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace gs {

// Cache-line aligned, so that a row of 8 doubles never straddles two lines, and not initialized: these arrays are
// written once, and first touching them twice would cost as much as filling them.
template <class T> struct FreshMemory {
  using value_type = T;
  FreshMemory() = default;
  template <class U> FreshMemory(const FreshMemory<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64))); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t(64)); }
  template <class U> void construct(U*) {}
  template <class U, class V> void construct(U* p, V&& v) { ::new (p) U(std::forward<V>(v)); }
  bool operator==(const FreshMemory&) const { return true; }
};
template <class T> using FreshVector = std::vector<T, FreshMemory<T>>;

}  // namespace gs
