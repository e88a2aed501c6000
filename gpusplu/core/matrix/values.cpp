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

// Largest modulus; infinity when any value is NaN or infinite. By vectors of the language, as compilers make none of a
// loop whose comparisons mean something for NaN; several of them, as each operation takes a few cycles.
template <class R> R largest_real(const R* values, off n) {
  constexpr int lanes = 16 / sizeof(R), chains = 4;
  using Bits = std::conditional_t<sizeof(R) == 4, std::int32_t, std::int64_t>;
  typedef R Vector __attribute__((vector_size(16)));
  typedef Bits BitVector __attribute__((vector_size(16)));
  Vector largest[chains] = {};
  auto unordered = largest[0] != largest[0];
  off k = 0;
  for (; k + chains * lanes <= n; k += chains * lanes)
    for (int c = 0; c < chains; c++) {
      Vector v;
      std::memcpy(&v, values + k + c * lanes, sizeof v);
      unordered |= v != v;
      v = (Vector)((BitVector)v & std::numeric_limits<Bits>::max());
      largest[c] = v > largest[c] ? v : largest[c];
    }
  R all = 0;
  bool nan = false;
  for (int c = 0; c < chains; c++)
    for (int lane = 0; lane < lanes; lane++) all = std::max(all, largest[c][lane]), nan |= unordered[lane] != 0;
  for (; k < n; k++) all = std::max(all, std::abs(values[k])), nan |= values[k] != values[k];
  return nan ? INFINITY : all;
}

template <class R> bool all_finite_real(const R* values, off n) {
  constexpr off kBlock = 4096;
  for (off start = 0; start < n; start += kBlock)
    if (!std::isfinite(largest_real(values + start, std::min(n - start, kBlock)))) return false;
  return true;
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
