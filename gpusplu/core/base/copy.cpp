#include "base/copy.hpp"

#include <algorithm>
#include <cstring>

#include "base/threads.hpp"

namespace gs {

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t chunk = 1 << 15, least = 1 << 18;
  const int most = bytes < (1 << 22) ? 4 : 8;  // large arrays come from memory, not from a cache
  if (bytes < least) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::atomic<std::size_t> next{0};
  run_helpers(most, [&](const Team&) {
    for (std::size_t at = next.fetch_add(chunk); at < bytes; at = next.fetch_add(chunk))
      std::memcpy((char*)to + at, (const char*)from + at, std::min(chunk, bytes - at));
  });
}

}  // namespace gs
