// Memory layout of the lanes of a group, and copies of system values to and from it.
#pragma once
#include "simd/lanes.hpp"
#include "simd/lockstep_kernels.hpp"

namespace gs::GS_SIMD {

// Prefetch distances: entries of A, fronts, at most so many cache lines of a front's factor, and bytes of values.
constexpr int ahead_entries = 96, ahead_fronts = 2, ahead_lines = 64, ahead_bytes = 1024;

template <class T> struct LockstepLanes {
  using S = std::remove_pointer_t<decltype(native((T*)nullptr))>;
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
