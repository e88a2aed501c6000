// Requests pages of 2 MiB for large arrays, if the system has them: one page fault instead of 512.
#pragma once
#include <cstddef>
#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace gs {

// For memory that has been allocated and not written yet. No effect on small arrays.
inline void prefer_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef __linux__
  constexpr std::uintptr_t page = 4096, least = std::uintptr_t(4) << 20;
  const std::uintptr_t begin = ((std::uintptr_t)memory + page - 1) & ~(page - 1);
  const std::uintptr_t end = ((std::uintptr_t)memory + bytes) & ~(page - 1);
  if (end >= begin + least) madvise((void*)begin, end - begin, MADV_HUGEPAGE);  // advice only: failure is harmless
#endif
}
template <class Vector> void prefer_huge_pages(Vector& v) { prefer_huge_pages(v.data(), v.size() * sizeof(v[0])); }

}  // namespace gs
