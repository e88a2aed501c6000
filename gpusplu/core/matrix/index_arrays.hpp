// Index arrays of a matrix as the caller has them, and copies that identify the same pattern later.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/raw_vector.hpp"
#include "base/types.hpp"

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

// The bytes of two arrays: pointers and indices, or rows and columns. `form` encodes the number types.
struct IndexArrays {
  off n = 0;
  int form = 0;
  const void* data[2] = {};
  std::size_t size[2] = {};  // [bytes]

  std::size_t bytes() const { return size[0] + size[1]; }
  std::uint64_t hash() const {
    const off about[] = {n, form, (off)size[0]};
    Hash hash;
    hash.add(about, sizeof about);
    for (const int k : {0, 1}) hash.add(data[k], size[k]);
    return hash.value();
  }
};

class IndexCopy {
 public:
  explicit IndexCopy(const IndexArrays& given);
  IndexCopy(IndexCopy&&) = default;
  ~IndexCopy();
  bool is_of(const IndexArrays& other) const {
    if (other.n != of_.n || other.form != of_.form || other.size[0] != of_.size[0] || other.size[1] != of_.size[1])
      return false;
    const auto same = [&](int k) {
      return !of_.size[k] || std::memcmp(bytes_.data() + (k ? of_.size[0] : 0), other.data[k], of_.size[k]) == 0;
    };
    return same(0) && same(1);
  }
  std::size_t bytes() const { return bytes_.size(); }

 private:
  IndexArrays of_;  // its pointers, which are the caller's, are not used
  RawVector<char> bytes_;
};

}  // namespace gs
