#include "certify/range.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/types.hpp"
#include "matrix/values.hpp"

namespace gs {
namespace {

// The largest binary exponent of v, not all zero, times powers of two.
template <class T> int largest_exponent(const T* v, idx n, const std::vector<double>& scale) {
  int largest = std::numeric_limits<int>::min();
  for (idx i = 0; i < n; i++)
    if (v[i] != T(0))
      largest =
          std::max(largest, 1 + std::ilogb(abs1(v[i] * real_t<T>(0.5))) + (scale.empty() ? 0 : std::ilogb(scale[i])));
  return largest;
}

// out = v times a power of two.
template <class T> void scale_by_power(const T* v, idx n, int exponent, T* out) {
  using Real = real_t<T>;
  const auto* from = reinterpret_cast<const Real*>(v);
  auto* to = reinterpret_cast<Real*>(out);
  for (off i = 0; i < off(is_complex<T> ? 2 : 1) * n; i++) to[i] = std::ldexp(from[i], exponent);
}

}  // namespace

template <class T> bool stays_in_range(idx n, const T* b, const T* x, ScaleRange scales_of_b, ScaleRange scales_of_x) {
  if (!all_finite(x, n)) return false;
  constexpr double least = std::numeric_limits<real_t<T>>::min() / eps<T>;
  const auto reaches = [n](const T* v, double size) {  // usually returns early
    return std::any_of(v, v + n, [size](const T& entry) { return abs1(entry) >= size; });
  };
  if (reaches(b, least / std::min(1.0, scales_of_b.least)))
    return reaches(x, least * std::max(1.0, scales_of_x.largest));
  return std::all_of(b, b + n, [](const T& entry) { return entry == T(0); });
}

template <class T> void solve_multiples(idx n, const T* b, T* x, const std::vector<double>& scale_of_b,
                                        const std::function<void(const T* b, T* x)>& solve) {
  constexpr int range = std::numeric_limits<real_t<T>>::max_exponent;
  const double size = largest_part(b, n);
  if (!std::isfinite(size) || size == 0) return;
  const int scaled_exponent = largest_exponent(b, n, scale_of_b);
  std::vector<T> multiple(n), solution(n);
  bool finite = false;
  for (int exponent = 0; !finite && exponent > -range; exponent -= range / 4) {
    const int shift = exponent - scaled_exponent;
    scale_by_power(b, n, shift, multiple.data());
    solve(multiple.data(), solution.data());
    finite = all_finite(solution.data(), n);
    if (!finite) continue;
    scale_by_power(solution.data(), n, -shift, solution.data());
    const bool overflows = !all_finite(x, n) && !all_finite(solution.data(), n);
    for (idx i = 0; i < n; i++)
      if (!overflows || !all_finite(x + i, 1)) x[i] = solution[i];
  }
}

#define GS_INSTANTIATE(T)                                                        \
  template bool stays_in_range(idx, const T*, const T*, ScaleRange, ScaleRange); \
  template void solve_multiples(idx, const T*, T*, const std::vector<double>&,   \
                                const std::function<void(const T*, T*)>&);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
