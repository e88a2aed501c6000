// A 64-bit hash of bytes at the speed of memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gs {

// Four independent chains of multiply and rotate, 8 bytes per step.
struct Hash {
  std::uint64_t lane[4] = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0x2545f4914f6cdd1d};

  static std::uint64_t mix(std::uint64_t h, std::uint64_t word) {
    h = (h ^ word) * 0x9fb21c651e98df25;
    return (h << 29) | (h >> 35);
  }
  void add(const void* data, std::size_t bytes) {
    const char* p = static_cast<const char*>(data);
    std::uint64_t word[4];
    for (; bytes >= sizeof word; p += sizeof word, bytes -= sizeof word) {
      std::memcpy(word, p, sizeof word);
      for (int k = 0; k < 4; k++) lane[k] = mix(lane[k], word[k]);
    }
    std::memset(word, 0, sizeof word);
    if (bytes) std::memcpy(word, p, bytes);
    for (int k = 0; k < 4; k++) lane[k] = mix(lane[k], word[k] + bytes);
  }
  std::uint64_t value() const {
    std::uint64_t h = 0;
    for (const std::uint64_t l : lane) {
      h = mix(h, l);
      h ^= h >> 32;
    }
    return h * 0x9fb21c651e98df25 ^ (h >> 29);
  }
};

}  // namespace gs
