// Determinant, condition number and certified inertia of a Factor.
//
// M = L D L^H, as computed, has the inertia of D (Sylvester). A = (I - G) M with G = (M - A) M^-1, so while ||G|| < 1
// no matrix between M and A is singular, and A has the inertia of M regardless of rounding, growth or perturbed pivots.
// G v is the residual of a solve with the factors for the right-hand side v. If v is normally distributed, the mean of
// ||G v||^2 is ||G||_F^2, and the mean over a few v is practically never smaller by orders of magnitude: for eight
// vectors, by a factor of 1e-4 with probability less than 1e-14 (the worst case is G of rank one; Gratton &
// Titley-Peloquin, Improved bounds for small-sample estimation, SIAM J. Matrix Anal. Appl. 39 (2018)).
#include <cmath>
#include <random>
#include <tuple>

#include "analysis/graph.hpp"
#include "matrix/products.hpp"
#include "numeric/condition.hpp"
#include "numeric/factor.hpp"

namespace gs {
namespace {

// A product of many factors.
template <class T> struct LogProduct {
  T sign = 1;
  double log_modulus = 0;
  void multiply(T factor) {
    log_modulus += std::log((double)std::abs(factor));
    sign *= factor / T(std::abs(factor));
  }
};

// D with blocks of order 1 and 2.
template <class T> LogProduct<T> product_of_pivots(const std::vector<T>& d, const std::vector<T>& e, bool hermitian) {
  LogProduct<T> all;
  for (std::size_t k = 0; k < d.size(); k++) {
    if (e[k] == T(0)) {
      all.multiply(d[k]);
      continue;
    }
    const T conj_e = conj_if(e[k], hermitian);
    all.multiply(d[k] / conj_e * (d[k + 1] / e[k]) - T(1));
    all.multiply(e[k]), all.multiply(conj_e);
    k++;
  }
  if (is_complex<T> && hermitian) all.sign = T(std::real(all.sign) > 0 ? 1 : -1);
  return all;
}

}  // namespace

std::pair<std::complex<double>, double> Factor::slogdet() const {
  const UseLock::Shared shared = held();
  return typed([&]<class T>(T) -> std::pair<std::complex<double>, double> {
    const auto d = std::get<std::vector<T>>(numeric().diagonal());
    if (front_ && symbolic_->ldlt) {
      const auto e = std::get<std::vector<T>>(numeric().below_diagonal());
      const LogProduct<T> all = product_of_pivots(d, e, options_.hermitian);
      return {all.sign, all.log_modulus};
    }
    LogProduct<T> all;
    for (const T& pivot : d) all.multiply(pivot);
    if (symbolic_->cholesky) return {1, 2 * all.log_modulus};
    const int sign = parity(numeric().row_perm()) * parity(numeric().col_perm());
    return {all.sign * T((real_t<T>)sign), all.log_modulus};
  });
}

double Factor::reciprocal_condition() const {
  if (A_.n == 0) return std::numeric_limits<double>::infinity();
  const UseLock::Shared shared = held();
  const double rcond = typed([&]<class T>(T) {
    const double inverse_norm =
        estimate_inverse_norm<T>(A_.n, [&](Trans trans, const T* b, T* x) { unchecked_solve(trans, 1, b, x); });
    return 1 / (inverse_norm * norm_inf(A_, values_as<T>(), Trans::transpose));
  });
  return std::isfinite(rcond) ? rcond : 0.0;
}

double Factor::distance_of_factors() const {
  const std::vector<double> ones(symbolic_->row_scale.empty() ? A_.n : 0, 1.0);
  const std::vector<double>& scale = ones.empty() ? symbolic_->row_scale : ones;
  const std::size_t n = A_.n, size = n * inertia_samples;
  return typed([&]<class T>(T) {
    std::vector<T> b(size), x(size), r(size);
    std::mt19937_64 random(n);
    std::normal_distribution<double> normal;
    for (std::size_t i = 0; i < size; i++) b[i] = scaled(T(real_t<T>(normal(random))), 1 / scale[i % n]);
    unchecked_solve(Trans::none, inertia_samples, b.data(), x.data());
    std::vector<ResidualNorms> norms(inertia_samples);
    residual(A_, values_as<T>(), Trans::none, x.data(), b.data(), r.data(), inertia_samples, norms.data());
    double sum = 0;
    for (std::size_t i = 0; i < size; i++) {
      const double entry = std::abs(scaled(r[i], scale[i % n]));
      sum += entry * entry;
    }
    return std::sqrt(sum / inertia_samples);
  });
}

Inertia Factor::inertia() const {
  const UseLock::Shared shared = held();
  Inertia found;
  found.held = front_ && symbolic_->ldlt;
  if (!found.held) return found;
  std::tie(found.positive, found.negative) = front_->inertia_of_pivots();
  found.distance = A_.n ? distance_of_factors() : 0;
  found.certain = found.distance < certain_distance;
  return found;
}

}  // namespace gs
