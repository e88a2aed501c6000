#include "numeric/partial_factor.hpp"

#include <algorithm>
#include <cmath>

#include "base/types.hpp"
#include "matrix/modulus.hpp"
#include "matrix/products.hpp"
#include "matrix/values.hpp"
#include "numeric/error_checks.hpp"

namespace gs {

template <class T>
PartialFactor<T>::PartialFactor(std::shared_ptr<const Symbolic> symbolic, PatternView A, const FactorOptions& options)
    : symbolic_(with_scales_of<T>(std::move(symbolic))),
      A_(A),
      options_(options),
      policy_(eps<T>, options.pivoting, options.refine, 0),
      front_(symbolic_, A, options.hermitian),
      on_interface_(A.n, 0) {
  for (idx k = A.n - symbolic_->n_interface; k < A.n; k++) on_interface_[symbolic_->row_perm[k]] = 1;
}

template <class T> std::optional<RawVector<T>> PartialFactor<T>::factor(const T* values) {
  const UseLock::Exclusive own = use_.exclusive();
  factored_ = false;
  values_.assign(values, values + A_.nnz());
  norm_ = norm_inf(A_, values, Trans::none);
  const auto [perturb_below, tiny_below] = small_pivots_of_fronts(eps<T>, A_.n);
  info_ = front_.factor(values, {perturb_below, tiny_below});
  if (symbolic_->cholesky && info_.status != FactorInfo::ok) throw NotPositiveDefinite(info_.column, info_.min_pivot);
  const Decision decision = policy_.after_factorization(report_of(info_, symbolic_->cholesky, true, 0), true);
  if (decision == Decision::choose_pivots) return std::nullopt;
  RawVector<T> complement((std::size_t)n_interface() * n_interface());
  front_.complement(complement.data());
  if (!symbolic_->cholesky && options_.pivoting != Pivoting::fixed && !is_fit(complement)) return std::nullopt;
  factored_ = true;
  return complement;
}

// Whether a solve recovers a solution with entries of equal size: the rows of the interface check the eliminated
// unknowns, and those of the interior the rest.
template <class T> bool PartialFactor<T>::is_fit(const RawVector<T>& complement) const {
  const idx n = A_.n, m = n_interface(), first = n - m;
  const std::vector<T> known = known_answer<T>(n, largest_part(values_.data(), A_.nnz()));
  std::vector<T> b(n), halfway(n), x(n), r(n);
  multiply(A_, values_.data(), Trans::none, known.data(), b.data(), 1);
  front_.condense(1, b.data(), halfway.data());
  std::vector<T> left(halfway.begin() + first, halfway.end());
  for (idx t = 0; t < m; t++) {
    const T y = known[symbolic_->col_perm[first + t]];
    for (idx i = 0; i < m; i++) left[i] -= complement[i + (std::size_t)t * m] * y;
    halfway[first + t] = y;
  }
  front_.expand(1, halfway.data(), x.data());
  ResidualNorms norms;
  residual(A_, values_.data(), Trans::none, x.data(), b.data(), r.data(), 1, &norms);
  for (idx t = 0; t < m; t++) r[symbolic_->row_perm[first + t]] = left[t];
  norms.residual = largest_modulus(r.data(), 0, n);
  const double* scale = symbolic_->row_scale.empty() ? nullptr : symbolic_->row_scale.data();
  return policy_.is_accurate({backward_error(norms, norm_),
                              rowwise_error(A_, values_.data(), Trans::none, x.data(), b.data(), r.data(), scale, 1)});
}

template <class T> UseLock::Shared PartialFactor<T>::held() const {
  UseLock::Shared shared = use_.together();
  if (!factored_) throw std::logic_error("nothing is factored");
  return shared;
}

template <class T> void PartialFactor<T>::condense(idx nrhs, const T* b, T* halfway) const {
  const UseLock::Shared shared = held();
  front_.condense(nrhs, b, halfway);
}

// Error in the rows of the interior; r gets their residual, and zeros elsewhere.
template <class T> SolveError PartialFactor<T>::error_inside(idx nrhs, const T* b, const T* x, T* r) const {
  std::vector<ResidualNorms> norms(nrhs);
  residual(A_, values_.data(), Trans::none, x, b, r, nrhs, norms.data());
  SolveError error;
  for (ResidualNorms& column : norms) {
    for (idx i = 0; i < A_.n; i++)
      if (on_interface_[i]) r[i] = 0;
    column.residual = largest_modulus(r, 0, A_.n);
    error.normwise = max_or_nan(error.normwise, backward_error(column, norm_));
    r += A_.n;
  }
  return error;
}

// Refinement step for that residual, with the interface fixed.
template <class T> void PartialFactor<T>::step_inside(idx nrhs, const T* r, T* step) const {
  std::vector<T> halfway((std::size_t)A_.n * nrhs);
  front_.condense(nrhs, r, halfway.data());
  for (idx k = 0; k < nrhs; k++) {
    T* column = halfway.data() + (std::size_t)k * A_.n;
    std::fill(column + A_.n - n_interface(), column + A_.n, T(0));
  }
  front_.expand(nrhs, halfway.data(), step);
}

template <class T> bool PartialFactor<T>::expand(idx nrhs, const T* b, const T* halfway, T* x) const {
  const UseLock::Shared shared = held();
  const std::size_t size = (std::size_t)A_.n * nrhs;
  front_.expand(nrhs, halfway, x);
  const bool finite = all_finite(halfway, (off)size);
  if (!policy_.must_measure(symbolic_->cholesky ? Trust::one : Trust::none, {.n_accurate = 1}))
    return !policy_.must_warn(0, all_finite(x, (off)size), finite);
  std::vector<T> r(size), step(size), kept;
  const auto refined_step = [&](bool sized) {
    step_inside(nrhs, r.data(), step.data());
    kept.assign(x, x + size);
    for (std::size_t i = 0; i < size; i++) x[i] += step[i];
    return sized ? relative_size(step.data(), x, A_.n, nrhs) : 0;
  };
  const Refined found = policy_.refine(report_of(info_, symbolic_->cholesky, true, 0),
                                       {[&](bool) { return error_inside(nrhs, b, x, r.data()); }, refined_step,
                                        [&] { std::copy(kept.begin(), kept.end(), x); }});
  return !policy_.must_warn(found.error, all_finite(x, (off)size), finite);
}

#define GS_INSTANTIATE(T) template class PartialFactor<T>;
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
