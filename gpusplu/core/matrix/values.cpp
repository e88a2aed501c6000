#include "matrix/values.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/parallel.hpp"
#include "base/scalars.hpp"

namespace gs {
namespace {

template <class T> T value_of(const T* values, off source) {
  const T v = values[source ^ (source >> 63)];  // ~source when negative
  return conj_if(v, source < 0);
}

// A value is finite when its exponent bits are not all ones. Integer tests vectorize, and unlike arithmetic on the
// values they mean the same under every compiler flag.
template <class R> bool all_finite_real(const R* values, off n) {
  using Bits = std::conditional_t<sizeof(R) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits exponent = sizeof(R) == 4 ? (Bits)0x7f800000 : (Bits)0x7ff0000000000000;
  constexpr off kBlock = 4096;
  for (off start = 0; start < n; start += kBlock) {
    const off end = std::min(n, start + kBlock);
    Bits bad = 0;
    for (off k = start; k < end; k++) {
      Bits bits;
      std::memcpy(&bits, values + k, sizeof bits);
      bad |= (bits & exponent) == exponent;
    }
    if (bad) return false;
  }
  return true;
}

// The bits of non-negative floating-point numbers are ordered as integers, NaN above infinity.
template <class R> R largest_real(const R* values, off n) {
  using Bits = std::conditional_t<sizeof(R) == 4, std::int32_t, std::int64_t>;
  Bits largest = 0;
  for (off k = 0; k < n; k++) {
    Bits bits;
    std::memcpy(&bits, values + k, sizeof bits);
    bits &= std::numeric_limits<Bits>::max();
    largest = bits > largest ? bits : largest;
  }
  R value;
  std::memcpy(&value, &largest, sizeof value);
  return std::isfinite(value) ? value : std::numeric_limits<R>::infinity();
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

template <class T> bool all_finite(const T* values, off n) {
  const off reals = is_complex<T> ? 2 * n : n;
  const auto* first = reinterpret_cast<const real_t<T>*>(values);
  std::atomic<bool> finite{true};
  over_range(reals, reals / 4, [&](off begin, off end) {
    if (!all_finite_real(first + begin, end - begin)) finite.store(false);
  });
  return finite.load();
}

template <class T> double largest_part(const T* values, off n) {
  const off reals = is_complex<T> ? 2 * n : n;
  const auto* first = reinterpret_cast<const real_t<T>*>(values);
  const int want = std::min(team_size_for(reals / 4), num_threads());
  std::vector<double> parts(want, 0.0);
  run_team(want, [&](const Team& team) {
    const auto [begin, end] = slice(reals, team);
    parts[team.rank] = largest_real(first + begin, end - begin);
  });
  return *std::max_element(parts.begin(), parts.end());
}

#define GS_INSTANTIATE(T)                                      \
  template void gather_values(const Canonical&, const T*, T*); \
  template bool all_finite(const T*, off);                     \
  template double largest_part(const T*, off);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
