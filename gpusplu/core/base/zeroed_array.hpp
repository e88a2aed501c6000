// Arrays of zeros with pages that are allocated on first use.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <new>

#include "base/types.hpp"

namespace gs {

template <class T> class ZeroedArray {  // starts at a cache line
 public:
  explicit ZeroedArray(off size) : size_(size), memory_(std::calloc((size + 16) * sizeof(T), 1)) {
    if (!memory_) throw std::bad_alloc();
  }
  ZeroedArray(ZeroedArray&& other) noexcept : size_(other.size_), memory_(other.memory_) { other.memory_ = nullptr; }
  ~ZeroedArray() { std::free(memory_); }
  T* data() const { return reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(memory_) + 63) / 64 * 64); }
  off size() const { return size_; }

 private:
  off size_;
  void* memory_;
};

}  // namespace gs
