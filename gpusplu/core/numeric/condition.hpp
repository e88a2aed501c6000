// Reciprocal condition estimate in the 1-norm: Hager 1984 as improved by Higham, ACM TOMS 14 (1988), algorithm 4.1.
#pragma once
#include <cmath>
#include <vector>

#include "base/types.hpp"

namespace gs {

// Lower bound of ||A^-1||_1, nearly always within a factor of three. solve(trans, b, x) solves with A or A^H.
template <class T, class Solve> double estimate_inverse_norm(idx n, Solve&& solve) {
  using R = real_t<T>;
  std::vector<T> x(n, T(R(1) / R(n))), y(n), signs(n), z(n);
  auto norm_of = [&](const std::vector<T>& v) {
    double sum = 0;
    for (const T& e : v) sum += std::abs(e);
    return sum;
  };
  double estimate = 0;
  idx last = -1;
  for (int iteration = 0; iteration < 5; iteration++) {
    solve(Trans::none, x.data(), y.data());
    const double norm = norm_of(y);
    if (iteration > 0 && !(norm > estimate)) break;
    estimate = norm;
    for (idx i = 0; i < n; i++) signs[i] = y[i] == T(0) ? T(1) : y[i] / T(std::abs(y[i]));
    solve(Trans::conj_transpose, signs.data(), z.data());
    idx largest = 0;
    for (idx i = 1; i < n; i++)
      if (std::abs(z[i]) > std::abs(z[largest])) largest = i;
    if (largest == last) break;
    last = largest;
    std::fill(x.begin(), x.end(), T(0));
    x[largest] = T(1);
  }
  for (idx i = 0; i < n; i++) x[i] = T(R((i % 2 ? -1.0 : 1.0) * (1.0 + i / std::max(1.0, n - 1.0))));
  solve(Trans::none, x.data(), y.data());
  return std::max(estimate, 2 * norm_of(y) / (3.0 * n));
}

}  // namespace gs
