// Values of many systems in lockstep: an entry consists of 64 bytes of real numbers, one number for each system, and
// for complex numbers twice as much. An instruction set with shorter vectors processes an entry in consecutive parts:
// an entry is the adjacent values of its parts, V each.
#pragma once
#include <utility>

#include "simd/lockstep_kernels.hpp"
#include "simd/vec.hpp"

namespace gs::GS_SIMD {

constexpr int parts = 64 / vector_bytes;

template <class S> struct LanesOf { using type = Vec<S>; };
template <class R> struct LanesOf<Pair<R>> { using type = Pair<Vec<R>>; };
template <class S> using Lanes = typename LanesOf<S>::type;

template <class V> using lane_real = std::remove_cvref_t<decltype(real<V>()[0])>;
template <class V> constexpr bool has_pairs = Real<V>::complex;
template <class V>
concept RealLanes = !has_pairs<V>;

template <class V> GS_INLINE void add_to(V& sum, V term) { sum = plus(sum, term); }

// The elements of an array that belong to one part of the lanes.
template <class V> struct Entries {
  V* p;
  GS_INLINE_MEMBER V& operator[](int i) const { return p[(off)i * parts]; }
  GS_INLINE_MEMBER Entries operator+(off k) const { return {p + k * parts}; }
};

// Stores that bypass the caches, to aligned memory; other threads see them after `stream_end`.
#if defined(GS_MASK_REGISTERS)
template <class R> GS_INLINE void stream(R* p, Vec<R> v) { _mm512_stream_si512((__m512i*)p, (__m512i)v); }
GS_INLINE void stream_end() { _mm_sfence(); }
#elif defined(GS_MASK_VECTORS)
template <class R> GS_INLINE void stream(R* p, Vec<R> v) { _mm256_stream_si256((__m256i*)p, (__m256i)v); }
GS_INLINE void stream_end() { _mm_sfence(); }
#else
template <class R> GS_INLINE void stream(R* p, Vec<R> v) { store(p, v); }
GS_INLINE void stream_end() {}
#endif

// Register tiles: 32 registers with AVX-512, else 16.
template <class V> constexpr int TILE_ROWS = (vector_bytes == 64 ? 4 : 2) / (has_pairs<V> ? 2 : 1);
template <class V> constexpr int TILE_COLUMNS = 4;

// ---- comparisons: a lane of a mask is -1 or 0
template <class R> using LaneMask = BitVec<R>;

#if defined(GS_MASK_REGISTERS)
GS_INLINE bool any(LaneMask<double> m) { return _mm512_movepi64_mask((__m512i)m) != 0; }
GS_INLINE bool any(LaneMask<float> m) { return _mm512_movepi32_mask((__m512i)m) != 0; }
#elif defined(GS_MASK_VECTORS)
GS_INLINE bool any(LaneMask<double> m) { return _mm256_movemask_pd((__m256d)m) != 0; }
GS_INLINE bool any(LaneMask<float> m) { return _mm256_movemask_ps((__m256)m) != 0; }
#else
template <class B> GS_INLINE bool any(B m) {
  auto all = m[0];
  for (int i = 1; i < vector_bytes / (int)sizeof m[0]; i++) all |= m[i];
  return all != 0;
}
#endif

template <RealLanes V> GS_INLINE V root(V v) {
  for (int i = 0; i < lanes<lane_real<V>>; i++) v[i] = square_root(v[i]);
  return v;
}

template <class R> constexpr R largest_number = sizeof(R) == 4 ? 3.40282347e38 : 1.7976931348623157e308;

template <class R> GS_INLINE Vec<R> absolute(Vec<R> v) { return (Vec<R>)size_bits<R>(v); }
// The larger one; b where either is NaN. GCC makes a comparison and a selection of `a > b ? a : b` in loops.
#if defined(GS_MASK_REGISTERS)
GS_INLINE Vec<double> maximum(Vec<double> a, Vec<double> b) {
  return (Vec<double>)_mm512_maskz_max_pd(0xff, (__m512d)a, (__m512d)b);
}
GS_INLINE Vec<float> maximum(Vec<float> a, Vec<float> b) {
  return (Vec<float>)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
}
#elif defined(GS_MASK_VECTORS)
GS_INLINE Vec<double> maximum(Vec<double> a, Vec<double> b) {
  return (Vec<double>)_mm256_max_pd((__m256d)a, (__m256d)b);
}
GS_INLINE Vec<float> maximum(Vec<float> a, Vec<float> b) { return (Vec<float>)_mm256_max_ps((__m256)a, (__m256)b); }
#else
template <class V> GS_INLINE V maximum(V a, V b) { return a > b ? a : b; }
#endif

// |re| + |im|
template <RealLanes V> GS_INLINE V size1(V v) { return absolute<lane_real<V>>(v); }
template <RealLanes V> GS_INLINE V size1(Pair<V> v) { return size1(v.re) + size1(v.im); }

// The modulus, without intermediate overflow or underflow.
template <RealLanes V> GS_INLINE V modulus(V v) { return absolute<lane_real<V>>(v); }
template <RealLanes V> GS_INLINE V modulus(Pair<V> v) {
  const V re = modulus(v.re), im = modulus(v.im), one = broadcast<lane_real<V>>(1);
  const V large = re > im ? re : im, small = re > im ? im : re, share = small / (large == 0 ? one : large);
  return large * root(one + share * share);
}

// Reciprocals. Complex numbers are scaled to about 1 before they are squared.
template <RealLanes V> GS_INLINE V reciprocal(V v) { return broadcast<lane_real<V>>(1) / v; }
template <RealLanes V> GS_INLINE Pair<V> reciprocal(Pair<V> v) {
  const V scale = reciprocal(size1(v)), re = v.re * scale, im = v.im * scale;
  const V inverse = scale / (re * re + im * im);
  return {re * inverse, -im * inverse};
}

template <class V> GS_INLINE V choose(LaneMask<lane_real<V>> where, V yes, V no) {
  if constexpr (has_pairs<V>) return {where ? yes.re : no.re, where ? yes.im : no.im};
  else return where ? yes : no;
}

// Exchanges numbers `step` apart of rows `step` apart. The lane numbers are a pack so that orders are constants.
template <class R, int step, int... lane>
GS_INLINE void turn_step(Vec<R> (&v)[sizeof...(lane)], std::integer_sequence<int, lane...>) {
  constexpr int w = sizeof...(lane);
#pragma GCC unroll 16
  for (int i = 0; i < w; i++) {
    if (i & step) continue;
    const Vec<R> a = v[i], b = v[i + step];
    v[i] = __builtin_shufflevector(a, b, (lane & step ? lane - step + w : lane)...);
    v[i + step] = __builtin_shufflevector(a, b, (lane & step ? lane + w : lane + step)...);
  }
}

// Transposes a square of as many rows as a vector has numbers.
template <class R, int step = 1> GS_INLINE void turn(Vec<R> (&v)[lanes<R>]) {
  if constexpr (step < lanes<R>) {
    turn_step<R, step>(v, std::make_integer_sequence<int, lanes<R>>());
    turn<R, 2 * step>(v);
  }
}

// ---- memory layout of the lanes of a group, and copies of system values to and from it

// Prefetch distances: entries of A, fronts, at most so many cache lines of a front's factor, and bytes of values.
constexpr int ahead_entries = 96, ahead_fronts = 2, ahead_lines = 64, ahead_bytes = 1024;

template <class T> struct LockstepLanes {
  using S = native_t<T>;
  using R = real<S>;
  using V = Lanes<S>;
  static constexpr int width = lanes<R>;               // lanes of a part
  static constexpr int lines = sizeof(S) / sizeof(R);  // cache lines of an entry

  static Entries<V> entries(const R* p, int part) { return {(V*)p + part}; }

  static V value(const T* const* systems, off k) {
    V v;
    for (int l = 0; l < width; l++) {
      const S s = native(systems[l])[k];
      if constexpr (has_pairs<V>) v.re[l] = s.re, v.im[l] = s.im;
      else v[l] = s;
    }
    return v;
  }

  // Adjacent entries that are copied together, `block` of them: as many numbers as there are lanes.
  static constexpr int block = width * (int)sizeof(R) / (int)sizeof(S);
  template <class See> GS_INLINE_MEMBER static void values(const T* const* systems, off k, Entries<V> to, See&& see) {
    Vec<R> v[width];
    for (int l = 0; l < width; l++) {
      v[l] = GS_SIMD::load((const R*)(systems[l] + k));
      __builtin_prefetch((const char*)(systems[l] + k) + ahead_bytes);
    }
    turn<R>(v);
    for (int e = 0; e < block; e++) {
      V own;
      if constexpr (has_pairs<V>) own = {v[2 * e], v[2 * e + 1]};
      else own = v[e];
      see(e, own);
      to[e] = own;
    }
  }
  static void values_back(Entries<V> from, off k, T* const* systems) {
    Vec<R> v[width];
    for (int e = 0; e < block; e++) {
      if constexpr (has_pairs<V>) v[2 * e] = from[e].re, v[2 * e + 1] = from[e].im;
      else v[e] = from[e];
    }
    turn<R>(v);
    for (int l = 0; l < width; l++) GS_SIMD::store((R*)(systems[l] + k), v[l]);
  }

  static T number(const R* entry, int lane) {
    const int part = lane / width, l = lane % width;
    if constexpr (has_pairs<V>) {
      const R* re = entry + part * 2 * width + l;
      return T(re[0], re[width]);
    } else {
      return entry[part * width + l];
    }
  }

  static LaneMask<R> mask_of(const std::uint8_t* chosen) {
    LaneMask<R> mask;
    for (int l = 0; l < width; l++) mask[l] = chosen[l] ? -1 : 0;
    return mask;
  }

  // Prefetches `count` entries from `p` on, up to a limit.
  template <int write> static void prefetch(const R* p, int count) {
    const int n = count * lines < ahead_lines ? count * lines : ahead_lines;
    for (int k = 0; k < n; k++) __builtin_prefetch(p + k * (64 / (int)sizeof(R)), write);
  }
};

}  // namespace gs::GS_SIMD
