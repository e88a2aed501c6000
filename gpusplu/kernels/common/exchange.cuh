// Values that blocks of one launch hand to each other without a flag: every word is 32 bits of a value and a tag, so
// that a thread that sees the tag has the value (the LL protocol of NVIDIA's NCCL). This takes one trip through the
// second-level cache, where a flag with release and acquire takes two and a fence. Tags differ from solve to solve;
// memory is zero at first.
#pragma once
#include "common/device.cuh"

using Word = unsigned long long;
constexpr int WORDS = sizeof(Scalar) / 4;  // of a value

// The words of a value.
struct Packet {
  Word word[WORDS];

  Packet() = default;
  DEVICE Packet(Scalar v, unsigned tag) {
    unsigned parts[WORDS];
    memcpy(parts, &v, sizeof(Scalar));
    for_all<WORDS>([&](int k) { word[k] = (Word)tag << 32 | parts[k]; });
  }
  DEVICE bool has(unsigned tag) const {
    bool all = true;
    for_all<WORDS>([&](int k) { all = all && (unsigned)(word[k] >> 32) == tag; });
    return all;
  }
  DEVICE Scalar value() const {
    unsigned parts[WORDS];
    Scalar v;
    for_all<WORDS>([&](int k) { parts[k] = (unsigned)word[k]; });
    memcpy(&v, parts, sizeof(Scalar));
    return v;
  }
  // SHARED: in shared memory, else in global memory, two words at a time.
  template <bool SHARED = false> DEVICE void load(const Word* from) {
    if constexpr (SHARED || WORDS == 1) for_all<WORDS>([&](int k) { word[k] = load_word(from + k); });
    else for_all<WORDS / 2>([&](int k) { load_words(from + 2 * k, word[2 * k], word[2 * k + 1]); });
  }
  template <bool SHARED = false> DEVICE void store(Word* to) const {
    if constexpr (SHARED || WORDS == 1) for_all<WORDS>([&](int k) { store_word(to + k, word[k]); });
    else for_all<WORDS / 2>([&](int k) { store_words(to + 2 * k, word[2 * k], word[2 * k + 1]); });
  }
};
DEVICE void send_value(Word* to, Scalar v, unsigned tag) { Packet(v, tag).store(to); }

// This thread's values at from[0], from[1], ..: waits until all have arrived, polling only for those that have not. A
// pause between polls leaves the cache to working blocks (10 to 25% of a solve); the block that continues next uses
// none.
template <int COUNT>
DEVICE void wait_values(const Word* const (&from)[COUNT], unsigned tag, Scalar (&v)[COUNT], bool pause = true) {
  Packet packet[COUNT];
  unsigned missing = (1u << COUNT) - 1;
  for (;;) {
    for_all<COUNT>([&](int r) {
      if (missing >> r & 1) packet[r].load(from[r]);
    });
    for_all<COUNT>([&](int r) {
      if (packet[r].has(tag)) missing &= ~(1u << r);
    });
    if (!missing) break;
    before_looking_again(from[0], pause);
  }
  for_all<COUNT>([&](int r) { v[r] = packet[r].value(); });
}
DEVICE Scalar wait_value(const Word* from, unsigned tag, bool pause = true) {
  const Word* const all[1] = {from};
  Scalar v[1];
  wait_values<1>(all, tag, v, pause);
  return v[0];
}
// The COUNT values from `from` on for all lanes of a warp; those from `some` on are replaced by the last of them.
template <int COUNT>
DEVICE void wait_shared_values(const Word* from, int some, unsigned tag, Scalar (&v)[COUNT], bool pause) {
  static_assert(COUNT <= 32);
  const Scalar own = wait_value(from + min((int)(threadIdx.x & 31), some - 1) * WORDS, tag, pause);
  __syncwarp();
  for_all<COUNT>([&](int k) { v[k] = shuffle(own, k); });
}
