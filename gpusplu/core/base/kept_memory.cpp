#include "base/kept_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace gs {
namespace {

constexpr std::size_t most_bytes = std::size_t(16) << 20;
// The C library keeps smaller blocks by itself. Of large blocks the system may reclaim the pages whenever it needs
// them; until then they are resident.
constexpr int least_bits = 14, large_bits = 22, most_bits = 29;
// Four sizes per power of two: a block may be a quarter larger than requested; that part is never written.
constexpr int small_sizes = 4 * (large_bits - least_bits), sizes = 4 * (most_bits - least_bits), of_a_size = 8;

std::atomic<void*> kept[sizes][of_a_size];

// Size class for so many bytes; outside of 0 .. sizes-1 if such blocks are not kept.
int size_number(std::size_t bytes) {
  if (bytes <= std::size_t(1) << least_bits) return -1;
  const int bits = std::bit_width(bytes - 1) - 1;  // 2^bits < bytes <= 2^(bits + 1)
  if (bits >= most_bits) return -1;
  return 4 * (bits - least_bits) + (int)(((bytes - 1) >> (bits - 2)) & 3);
}
std::size_t size_of(int number) { return (std::size_t)(5 + number % 4) << (least_bits - 2 + number / 4); }

template <class T> T* take(std::atomic<T*>& place) {
  return place.load(std::memory_order_relaxed) ? place.exchange(nullptr, std::memory_order_acquire) : nullptr;
}

// The bound of the pattern cache (gpusplu/dispatch/patterns.py): 512 MiB, or a sixteenth of the memory if that is less.
std::size_t most_large_bytes() {
  static const std::size_t most = std::min<std::size_t>(
      std::size_t(1) << most_bits, (std::size_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 16);
  return most;
}

// Requests pages of 2 MiB for a large block, if the system has them: one page fault instead of 512.
void prefer_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::uintptr_t page = 4096, least = std::uintptr_t(4) << 20;
  const std::uintptr_t begin = ((std::uintptr_t)memory + page - 1) & ~(page - 1);
  const std::uintptr_t end = ((std::uintptr_t)memory + bytes) & ~(page - 1);
  if (end >= begin + least) madvise((void*)begin, end - begin, MADV_HUGEPAGE);  // advice only: failure is harmless
#endif
}

bool advise_pages(void* memory, std::size_t bytes, int advice) {
  static const std::uintptr_t page = sysconf(_SC_PAGESIZE);
  const std::uintptr_t begin = ((std::uintptr_t)memory + page - 1) / page * page;
  const std::uintptr_t end = ((std::uintptr_t)memory + bytes) / page * page;
  return begin >= end || madvise((void*)begin, end - begin, advice) == 0;
}

// Lets the system reclaim the pages of a block. The contents stay until then.
bool offer_pages(void* memory, std::size_t bytes) {
#ifdef MADV_FREE
  return advise_pages(memory, bytes, MADV_FREE);
#else
  return false;
#endif
}

// Large blocks come from the system and return to it: the C library would keep those that it has in its heaps.
bool is_large(std::size_t bytes) { return bytes > std::size_t(1) << large_bits; }

void* new_block(std::size_t size, std::size_t used) {
  if (!is_large(size)) return std::malloc(size);
  void* const block = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return nullptr;
  prefer_huge_pages(block, used);
  return block;
}
void free_block(void* block, std::size_t size) {
  if (is_large(size)) munmap(block, size);
  else std::free(block);
}

// Bytes of kept memory: small arrays, and large ones.
std::atomic<std::size_t> small{0}, large{0};

std::atomic<std::size_t>& account_of(int number) { return number < small_sizes ? small : large; }

void drop_arrays(int first, int end) {
  for (int number = first; number < end; number++)
    for (auto& place : kept[number])
      if (void* const found = take(place)) {
        account_of(number) -= size_of(number);
        free_block(found, size_of(number));
      }
}

// Small arrays and large ones have bounds of their own. Above a bound all arrays of that kind are freed: those that
// were useful for other matrices are not for this one.
void keep_within_bounds() {
  if (small > most_bytes) drop_arrays(0, small_sizes);
  if (large > most_large_bytes()) drop_arrays(small_sizes, sizes);
}

// From this size on a new block replaces all free memory, kept here and in the heaps of the C library, so that it does
// not raise the peak. Repeated work finds its blocks and does not come here.
constexpr std::size_t replacing_bytes = std::size_t(16) << 20;

void give_back_free_memory() {
  drop_kept_memory();
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace

void* take_memory(std::size_t bytes) {
  const int number = size_number(bytes);
  if (number >= 0)
    for (auto& place : kept[number])
      if (void* const found = take(place)) {
        account_of(number) -= size_of(number);
        return found;
      }
  const std::size_t size = number >= 0 ? size_of(number) : bytes;
  if (size >= replacing_bytes) give_back_free_memory();
  void* fresh = new_block(size, bytes);
  if (!fresh) drop_kept_memory(), fresh = new_block(size, bytes);
  return fresh;
}

void give_memory(void* memory, std::size_t bytes) {
  if (!memory) return;
  const int number = size_number(bytes);
  const std::size_t size = number >= 0 ? size_of(number) : bytes;
  if (number < 0 || (number >= small_sizes && !offer_pages(memory, bytes))) return free_block(memory, size);
  account_of(number) += size;
  keep_within_bounds();
  for (auto& place : kept[number]) {
    void* none = nullptr;
    if (!place.load(std::memory_order_relaxed) &&
        place.compare_exchange_strong(none, memory, std::memory_order_release, std::memory_order_relaxed))
      return;
  }
  account_of(number) -= size;
  free_block(memory, size);
}

void drop_kept_memory() { drop_arrays(0, sizes); }

void drop_pages(void* memory, std::size_t bytes) { advise_pages(memory, bytes, MADV_DONTNEED); }

}  // namespace gs
