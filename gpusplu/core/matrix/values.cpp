#include "matrix/values.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "base/parallel.hpp"
#include "base/types.hpp"
#include "matrix/modulus.hpp"

namespace gs {
namespace {

template <class T> T value_of(const T* values, off source) {
  const T v = values[source ^ (source >> 63)];  // ~source when negative
  return conj_if(v, source < 0);
}

// Largest part of values[0 .. n-1], infinity when any is not finite. prepare(begin, end) runs first for ranges that fit
// in a cache. `entries`: work of both, as threads_for counts it.
template <class T, class Prepare> double largest_after(const T* values, off n, off entries, Prepare&& prepare) {
  constexpr off step = 4096, parts = is_complex<T> ? 2 : 1;
  std::atomic<double> largest{0};
  over_range(n, entries, [&](off begin, off end) {
    double own = 0;
    for (off k = begin; k < end; k += step) {
      const off next = std::min(k + step, end);
      prepare(k, next);
      const double part = largest_real(reinterpret_cast<const real_t<T>*>(values + k), (next - k) * parts);
      own = std::isfinite(part) ? std::max(own, part) : INFINITY;
    }
    for (double seen = largest; own > seen && !largest.compare_exchange_weak(seen, own);) {
    }
  });
  return largest;
}

}  // namespace

template <class T> void gather_values(const Canonical& canonical, const T* values, T* out) {
  const off nnz = canonical.pattern.view().nnz();
  over_range(nnz, nnz, [&](off begin, off end) {
    if (canonical.identity) {
      std::copy(values + begin, values + end, out + begin);
    } else if (canonical.source_ptr.empty()) {
      for (off k = begin; k < end; k++) out[k] = value_of(values, canonical.source[k]);
    } else {
      for (off k = begin; k < end; k++) {
        T sum = 0;
        for (off p = canonical.source_ptr[k]; p < canonical.source_ptr[k + 1]; p++)
          sum += value_of(values, canonical.source[p]);
        out[k] = sum;
      }
    }
  });
}

template <class T> double largest_part(const T* values, off n) {
  return largest_after(values, n, n / (sizeof(T) == sizeof(real_t<T>) ? 4 : 2), [](off, off) {});
}

template <class T> double copy_values(const T* values, const off* source, T* out, off n) {
  // More threads than for other passes: a factorization follows, which needs them anyway.
  return largest_after(out, n, 4 * n, [&](off begin, off end) {
    if (source)
      for (off k = begin; k < end; k++) out[k] = values[source[k]];
    else std::copy(values + begin, values + end, out + begin);
  });
}

#define GS_INSTANTIATE(T)                                      \
  template void gather_values(const Canonical&, const T*, T*); \
  template double largest_part(const T*, off);                 \
  template double copy_values(const T*, const off*, T*, off);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
