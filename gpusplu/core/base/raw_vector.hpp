// Vectors whose elements are not cleared before they are written: large arrays meet memory first in the threads that
// fill them.
#pragma once
#include <memory>
#include <utility>
#include <vector>

namespace gs {

template <class T> struct UninitializedAllocator : std::allocator<T> {
  template <class U> struct rebind { using other = UninitializedAllocator<U>; };
  template <class U> void construct(U* at) { ::new ((void*)at) U; }
  template <class U, class... Args> void construct(U* at, Args&&... args) {
    ::new ((void*)at) U(std::forward<Args>(args)...);
  }
};
template <class T> using RawVector = std::vector<T, UninitializedAllocator<T>>;

}  // namespace gs
