// Certified inertia of a matrix from that of D.
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

#include "base/scalars.hpp"
#include "matrix/products.hpp"
#include "numeric/factor.hpp"

namespace gs {

template <class T> double Factor<T>::distance_of_factors() const {
  const std::vector<double> ones(symbolic_->row_scale.empty() ? A_.n : 0, 1.0);
  const std::vector<double>& scale = ones.empty() ? symbolic_->row_scale : ones;
  const std::size_t n = A_.n, size = n * inertia_samples;
  std::vector<T> b(size), x(size), r(size);
  std::mt19937_64 random(n);
  std::normal_distribution<double> normal;
  for (std::size_t i = 0; i < size; i++) b[i] = scaled(T(real_t<T>(normal(random))), 1 / scale[i % n]);
  engine_solve(Trans::none, inertia_samples, b.data(), x.data());
  std::vector<ResidualNorms> norms(inertia_samples);
  residual(A_, values_.data(), Trans::none, x.data(), b.data(), r.data(), inertia_samples, norms.data());
  double sum = 0;
  for (std::size_t i = 0; i < size; i++) {
    const double entry = std::abs(scaled(r[i], scale[i % n]));
    sum += entry * entry;
  }
  return std::sqrt(sum / inertia_samples);
}

template <class T> Inertia Factor<T>::inertia() const {
  const UseLock::Shared shared = held();
  Inertia found;
  found.held = front_ && symbolic_->ldlt;
  if (!found.held) return found;
  std::tie(found.positive, found.negative) = front_->inertia_of_pivots();
  found.distance = A_.n ? distance_of_factors() : 0;
  found.certain = found.distance < certain_distance;
  return found;
}

#define GS_INSTANTIATE(T)                                 \
  template double Factor<T>::distance_of_factors() const; \
  template Inertia Factor<T>::inertia() const;
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
