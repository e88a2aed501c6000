// The factor of a column LU as nodes of up to 8 columns, compiled from the pivoted columns: the storage that refactor,
// solve and extraction share. The layout is described in simd/column_program.hpp.
#pragma once
#include <cstdlib>
#include <new>
#include <vector>

#include "numeric/column_pivot.hpp"
#include "simd/column_program.hpp"

namespace gs {

// Cache-line aligned, so that a row of 8 doubles never straddles two lines.
template <class T> struct CacheAligned {
  using value_type = T;
  CacheAligned() = default;
  template <class U> CacheAligned(const CacheAligned<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64))); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t(64)); }
  bool operator==(const CacheAligned&) const { return true; }
};
template <class T> using AlignedVector = std::vector<T, CacheAligned<T>>;

// Zeros whose pages are only touched where they are used.
template <class T> class ZeroedWork {
 public:
  explicit ZeroedWork(off size) : size_(size), memory_(std::calloc((size + 16) * sizeof(T), 1)) {
    if (!memory_) throw std::bad_alloc();
  }
  ZeroedWork(ZeroedWork&& other) noexcept : size_(other.size_), memory_(other.memory_) { other.memory_ = nullptr; }
  ~ZeroedWork() { std::free(memory_); }
  T* data() const { return reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(memory_) + 63) / 64 * 64); }
  off size() const { return size_; }

 private:
  off size_;
  void* memory_;
};

template <class T> struct ColumnNodes {
  std::vector<ColumnNode> node;
  std::vector<idx> lower_row, upper_row;
  std::vector<ColumnSegment> segment;
  AlignedVector<T> lower, upper;
  std::vector<T> pivot, inverse_pivot;
  std::vector<idx> a_row;
  std::vector<ColumnPhase> phase;
  idx widest = 1;
  std::vector<ZeroedWork<T>> work;  // of refactor, one a worker

  idx n_nodes() const { return (idx)node.size() - 1; }
  idx width(idx s) const { return node[s + 1].first - node[s].first; }

  ColumnProgram<real_t<T>> program(const PermutedPattern& B, const real_t<T>* row_scale,
                                   const real_t<T>* col_scale) const {
    const auto numbers = [](const auto& v) { return reinterpret_cast<real_t<T>*>(const_cast<T*>(v.data())); };
    return {n_nodes(),      node.data(),     lower_row.data(),       upper_row.data(), segment.data(),
            numbers(lower), numbers(upper),  numbers(pivot),         numbers(inverse_pivot),
            B.ptr.data(),   B.first.data(),  a_row.data(),           row_scale,        col_scale,
            phase.data(),   (idx)phase.size()};
  }
};

// values, source, scales as in factor_with_pivoting, but row_scale by pivotal rows: for the part outside the blocks.
template <class T>
ColumnNodes<T> build_nodes(const PermutedPattern& B, const std::vector<idx>& block_ptr, const PivotedColumns<T>& columns,
                           const T* values, const off* source, const real_t<T>* row_scale, const real_t<T>* col_scale);

}  // namespace gs
