// Error checks. A system with a known solution: the error of the computed one decides whether a factor needs checks. A
// selected inverse: (A^-1 A)_jj = 1 = (A A^-1)_ii needs exactly the entries (j, i) of A^-1 for which
// A has (i, j).
#pragma once
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "base/operation.hpp"
#include "base/types.hpp"
#include "matrix/modulus.hpp"
#include "matrix/values.hpp"

namespace gs {

// Calls evaluate(of_row, i, error) for each column and row: the deviation from 1 of the diagonal entry of A^-1 A or A
// A^-1, computed from the entries of A^-1 on a pattern P that contains the pattern of A, relative to one plus the sum
// of the absolute values of the terms.
template <class T, class Evaluate>
void evaluate_ones(PatternView A, const T* values, PatternView P, const T* inverse, Evaluate&& evaluate) {
  using Wide = std::conditional_t<is_complex<T>, std::complex<double>, double>;
  std::vector<Wide> row_sum(A.n);
  std::vector<double> row_size(A.n, 1.0);
  Pace pace;
  for (idx j = 0; j < A.n; j++) {
    pace.go_on(1 + P.ptr[j + 1] - P.ptr[j]);
    Wide sum(0);
    double size = 1;
    off p = P.ptr[j];
    for (off k = A.ptr[j]; k < A.ptr[j + 1]; k++, p++) {
      while (P.ind[p] != A.ind[k]) p++;
      const Wide term = Wide(values[k]) * Wide(inverse[p]);
      const double magnitude = abs1(term);
      sum += term, size += magnitude;
      row_sum[A.ind[k]] += term, row_size[A.ind[k]] += magnitude;
    }
    evaluate(false, j, std::abs(Wide(1) - sum) / size);
  }
  for (idx i = 0; i < A.n; i++) evaluate(true, i, std::abs(Wide(1) - row_sum[i]) / row_size[i]);
}

// The largest of these errors; infinite if one is NaN.
template <class T> double identity_error(PatternView A, const T* values, PatternView P, const T* inverse) {
  double worst = 0;
  evaluate_ones(A, values, P, inverse, [&](bool, idx, double error) { worst = max_or_nan(worst, error); });
  return std::isnan(worst) ? std::numeric_limits<double>::infinity() : worst;
}

// Unknowns of equal size: 1, unless the entries of A, with the given largest one, are near an end of the range. Their
// signs have no pattern, so sums of entries that cancel because of the structure of A do not cancel here.
template <class T> std::vector<T> known_answer(idx n, double largest_of_A) {
  constexpr int extreme = std::numeric_limits<real_t<T>>::max_exponent / 2;
  const int exponent = largest_of_A > 0 ? std::ilogb(largest_of_A) : 0;
  const T entry = T((real_t<T>)std::ldexp(1.0, std::abs(exponent) > extreme ? -exponent / 2 : 0));
  std::vector<T> known(n);
  for (idx k = 0; k < n; k++) known[k] = ((std::uint32_t)k * 0x9E3779B9u) >> 31 ? -entry : entry;
  return known;
}

// ---- Reciprocal condition estimate in the 1-norm: Hager 1984 as improved by Higham, ACM TOMS 14 (1988), algorithm 4.1

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
