#include "base/kept_memory.hpp"

#include <atomic>
#include <bit>
#include <cstdlib>

namespace gs {
namespace {

constexpr std::size_t most_bytes = std::size_t(16) << 20;
// Smaller blocks are the C library's business, which keeps them anyway; larger ones are too few.
constexpr int least_bits = 14, most_bits = 22;
// Four sizes from a power of two to the next: what is handed out may be a quarter too much, which nobody writes to.
constexpr int sizes = 4 * (most_bits - least_bits), of_a_size = 8;

std::atomic<void*> kept[sizes][of_a_size];
std::atomic<std::size_t> kept_bytes{0};

// Of blocks for so many bytes; outside of 0 .. sizes-1 where none are kept.
int size_number(std::size_t bytes) {
  if (bytes <= std::size_t(1) << least_bits) return -1;
  const int bits = std::bit_width(bytes - 1) - 1;  // 2^bits < bytes <= 2^(bits + 1)
  if (bits >= most_bits) return -1;
  return 4 * (bits - least_bits) + (int)(((bytes - 1) >> (bits - 2)) & 3);
}
std::size_t size_of(int number) { return (std::size_t)(5 + number % 4) << (least_bits - 2 + number / 4); }

void* take(std::atomic<void*>& place) {
  return place.load(std::memory_order_relaxed) ? place.exchange(nullptr, std::memory_order_acquire) : nullptr;
}

}  // namespace

void* take_memory(std::size_t bytes) {
  const int number = size_number(bytes);
  if (number >= 0)
    for (auto& place : kept[number])
      if (void* const found = take(place)) {
        kept_bytes.fetch_sub(size_of(number), std::memory_order_relaxed);
        return found;
      }
  const std::size_t size = number >= 0 ? size_of(number) : bytes;
  if (void* const fresh = std::malloc(size)) return fresh;
  drop_kept_memory();
  return std::malloc(size);
}

// Where there is too much, all goes: what was of use to others before this matrix is of none to it.
void give_memory(void* memory, std::size_t bytes) {
  const int number = memory ? size_number(bytes) : -1;
  if (number < 0) return std::free(memory);
  if (kept_bytes.fetch_add(size_of(number), std::memory_order_relaxed) + size_of(number) > most_bytes)
    drop_kept_memory();
  for (auto& place : kept[number]) {
    void* none = nullptr;
    if (!place.load(std::memory_order_relaxed) &&
        place.compare_exchange_strong(none, memory, std::memory_order_release, std::memory_order_relaxed))
      return;
  }
  kept_bytes.fetch_sub(size_of(number), std::memory_order_relaxed);
  std::free(memory);
}

void drop_kept_memory() {
  for (int number = 0; number < sizes; number++)
    for (auto& place : kept[number])
      if (void* const found = take(place)) {
        kept_bytes.fetch_sub(size_of(number), std::memory_order_relaxed);
        std::free(found);
      }
}

}  // namespace gs
