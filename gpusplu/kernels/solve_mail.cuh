// Values that blocks of one launch hand to each other without a flag: every word is 32 bits of a value and a tag, so
// that who sees the tag has the value (the LL protocol of NVIDIA's NCCL). One trip through the second-level cache where
// a flag with release and acquire takes two and a fence. Tags differ from solve to solve; memory is zero at first.
#pragma once
#include "solve.cuh"

using Word = unsigned long long;
constexpr int WORDS = sizeof(Scalar) / 4;  // of a value

__device__ __forceinline__ void split(float v, unsigned* w) { w[0] = __float_as_uint(v); }
__device__ __forceinline__ void split(double v, unsigned* w) {
  const Word bits = (Word)__double_as_longlong(v);
  w[0] = (unsigned)bits, w[1] = (unsigned)(bits >> 32);
}
template <class R> __device__ __forceinline__ void split(Complex<R> v, unsigned* w) {
  split(v.re, w), split(v.im, w + sizeof(R) / 4);
}
__device__ __forceinline__ void join(const unsigned* w, float& v) { v = __uint_as_float(w[0]); }
__device__ __forceinline__ void join(const unsigned* w, double& v) {
  v = __longlong_as_double((long long)((Word)w[1] << 32 | w[0]));
}
template <class R> __device__ __forceinline__ void join(const unsigned* w, Complex<R>& v) {
  join(w, v.re), join(w + sizeof(R) / 4, v.im);
}

__device__ __forceinline__ void mail_value(Word* to, Scalar v, unsigned tag) {
  unsigned parts[WORDS];
  split(v, parts);
#pragma unroll
  for (int k = 0; k < WORDS; k++) store_word(to + k, (Word)tag << 32 | parts[k]);
}
// The COUNT values from `from` on, the same for all lanes; those from `some` on are replaced by the last of them.
template <int COUNT>
__device__ __forceinline__ void wait_values(const Word* from, int some, unsigned tag, Scalar (&v)[COUNT]) {
  static_assert(COUNT * WORDS <= 32);
  const int lane = threadIdx.x & 31, value = min(lane / WORDS, some - 1);
  const Word* own = from + value * WORDS + lane % WORDS;
  Word word = load_word(own);
  while (!__all_sync(~0u, (unsigned)(word >> 32) == tag)) word = load_word_again(own);
#pragma unroll
  for (int k = 0; k < COUNT; k++) {
    unsigned parts[WORDS];
#pragma unroll
    for (int w = 0; w < WORDS; w++) parts[w] = (unsigned)shuffle((int)(unsigned)word, k * WORDS + w);
    join(parts, v[k]);
  }
}
// The values at from[r], r = 0 .. COUNT - 1, of each lane's own.
template <int COUNT>
__device__ __forceinline__ void wait_own_values(const Word* const (&from)[COUNT], unsigned tag, Scalar (&v)[COUNT]) {
  Word word[COUNT][WORDS];
  bool seen = true;
#pragma unroll
  for (int r = 0; r < COUNT; r++)
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
      word[r][w] = load_word(from[r] + w);
      seen = seen && (unsigned)(word[r][w] >> 32) == tag;
    }
  while (!__all_sync(~0u, seen)) {
    seen = true;
#pragma unroll
    for (int r = 0; r < COUNT; r++)
#pragma unroll
      for (int w = 0; w < WORDS; w++) {
        word[r][w] = load_word_again(from[r] + w);
        seen = seen && (unsigned)(word[r][w] >> 32) == tag;
      }
  }
#pragma unroll
  for (int r = 0; r < COUNT; r++) {
    unsigned parts[WORDS];
#pragma unroll
    for (int w = 0; w < WORDS; w++) parts[w] = (unsigned)word[r][w];
    join(parts, v[r]);
  }
}
