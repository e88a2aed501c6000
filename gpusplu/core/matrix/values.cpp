#include "matrix/values.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "base/parallel.hpp"
#include "base/scalars.hpp"
#include "matrix/modulus.hpp"

namespace gs {
namespace {

template <class T> T value_of(const T* values, off source) {
  const T v = values[source ^ (source >> 63)];  // ~source when negative
  return conj_if(v, source < 0);
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
  run_pass(want, [&](const Team& team) {
    const auto [begin, end] = slice(reals, team);
    parts[team.rank] = largest_real(first + begin, end - begin);
  });
  double largest = 0;
  for (const double part : parts) largest = std::isfinite(part) ? std::max(largest, part) : INFINITY;
  return largest;
}

#define GS_INSTANTIATE(T)                                      \
  template void gather_values(const Canonical&, const T*, T*); \
  template bool all_finite(const T*, off);                     \
  template double largest_part(const T*, off);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
