// Solves of a Factor: within the range of the type, measured, refined, and with pivots that are chosen anew.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/range_flags.hpp"
#include "base/scalars.hpp"
#include "base/stopwatch.hpp"
#include "matrix/modulus.hpp"
#include "matrix/products.hpp"
#include "matrix/values.hpp"
#include "numeric/accuracy.hpp"
#include "numeric/factor.hpp"

namespace gs {
namespace {

// Solves above `refine_above` are refined; one that stays above `accept_below` is not accepted from fronts.
template <class T> constexpr double refine_above = 8 * eps<T>;
template <class T> constexpr double accept_below = 100 * eps<T>;
// Row by row, a doubtful factor has to be this accurate; partial pivoting alone is not always (3e-7 for sherman2).
template <class T> const double rowwise_below = std::sqrt(eps<T>);

// Largest entry of a refinement step beside that of the solution, the largest over the columns.
template <class T> double relative_size(const std::vector<T>& step, const std::vector<T>& x, idx nrhs) {
  const off n = (off)x.size() / nrhs;
  double largest = 0;
  for (idx k = 0; k < nrhs; k++) {
    const double size = largest_modulus(step.data(), k * n, (k + 1) * n);
    if (size != 0) largest = max_or_nan(largest, size / largest_modulus(x.data(), k * n, (k + 1) * n));
  }
  return largest;
}

// Of v, not all zero, times powers of two: the largest binary exponent.
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

template <class T> void Factor<T>::engine_solve(Trans trans, idx nrhs, const T* b, T* x) const {
  if (front_) front_->solve(trans, nrhs, b, A_.n, x, A_.n);
  else if (!column_->factored()) throw SingularError(-1);  // as the attempt to choose pivots anew found
  else column_->solve(trans, nrhs, b, A_.n, x, A_.n);
}

// Whether no number that matters left the range of the type on the way from b to x: x shows overflow, and some entries
// of b and x are so large that what underflows beside them is rounding error, scaled or not.
template <class T> bool Factor<T>::in_range(Trans trans, const T* b, const T* x) const {
  if (!all_finite(x, A_.n)) return false;
  constexpr double least = std::numeric_limits<real_t<T>>::min() / eps<T>;
  const auto reaches = [&](const T* v, double size) {  // mostly at once
    return std::any_of(v, v + A_.n, [size](const T& entry) { return abs1(entry) >= size; });
  };
  const int in = trans == Trans::none ? 0 : 1;
  if (reaches(b, least / std::min(1.0, least_scale_[in])))
    return reaches(x, least * std::max(1.0, largest_scale_[1 - in]));
  return std::all_of(b, b + A_.n, [](const T& entry) { return entry == T(0); });
}

// Solves, and where that leaves the range of the type again for multiples of b: that are about 1 when they are scaled,
// and if they overflow for ever smaller ones.
template <class T> void Factor<T>::solve_in_range(Trans trans, idx nrhs, const T* b, T* x) const {
  constexpr int range = std::numeric_limits<real_t<T>>::max_exponent;
  engine_solve(trans, nrhs, b, x);
  if (!front_ && column_->is_wide()) return;
  std::vector<T> multiple, solution;
  for (idx k = 0; k < nrhs; k++, b += A_.n, x += A_.n) {
    if (in_range(trans, b, x)) continue;
    const double size = largest_part(b, A_.n);
    if (!std::isfinite(size) || size == 0) continue;
    const int scaled_exponent =
        largest_exponent(b, A_.n, trans == Trans::none ? symbolic_->row_scale : symbolic_->col_scale);
    multiple.resize(A_.n), solution.resize(A_.n);
    bool finite = false;
    for (int exponent = 0; !finite && exponent > -range; exponent -= range / 4) {
      const int shift = exponent - scaled_exponent;
      scale_by_power(b, A_.n, shift, multiple.data());
      engine_solve(trans, 1, multiple.data(), solution.data());
      finite = all_finite(solution.data(), A_.n);
      if (!finite) continue;
      scale_by_power(solution.data(), A_.n, -shift, solution.data());
      const bool overflows = !all_finite(x, A_.n) && !all_finite(solution.data(), A_.n);
      for (idx i = 0; i < A_.n; i++)
        if (!overflows || !all_finite(x + i, 1)) x[i] = solution[i];
    }
  }
}

// Solves, measures the normwise backward error ||b - op(A) x|| / (||op(A)|| ||x|| + ||b||), the largest over the
// columns, of doubtful factors also the error of single rows, and refines while that helps. Whether what is left in x
// is accurate.
template <class T> bool Factor<T>::checked_solve(Trans trans, idx nrhs, const T* b, T* x) {
  const size_t size = (size_t)A_.n * nrhs;
  const double norm_of_A = norm(trans);
  const bool by_rows = doubtful();
  const std::vector<double>& scale = trans == Trans::none ? symbolic_->row_scale : symbolic_->col_scale;
  solve_in_range(trans, nrhs, b, x);
  std::vector<T> r(size), step, better;
  std::vector<ResidualNorms> norms(nrhs);
  struct Error {
    double normwise = 0, rowwise = 0;
    double excess() const {  // over what need not be refined
      return max_or_nan(normwise, rowwise) / refine_above<T>;
    }
  };
  auto measure = [&](const T* y) {
    Error error;
    residual(A_, values_.data(), trans, y, b, r.data(), nrhs, norms.data());
    for (ResidualNorms& column : norms) {
      // what is left where entries of x or products underflow to the last bit
      if (column.residual <= std::numeric_limits<real_t<T>>::denorm_min() * (A_.n + norm_of_A)) column.residual = 0;
      error.normwise = max_or_nan(error.normwise, backward_error(column, norm_of_A));
    }
    if (by_rows)
      error.rowwise =
          rowwise_error(A_, values_.data(), trans, y, b, r.data(), scale.empty() ? nullptr : scale.data(), nrhs);
    return error;
  };
  Error error = measure(x);
  if (error.excess() <= 1) verified_[trans != Trans::none] = true;
  off steps = 0;
  double moved = 0;
  // After a perturbed pivot steps are taken until they are small: residuals may be so where the solution is all wrong.
  for (bool goes_on = info_.n_perturbed > 0 || !(error.excess() <= 1); goes_on && steps < 3;) {
    step.resize(size);
    solve_in_range(trans, nrhs, r.data(), step.data());
    better.assign(x, x + size);
    for (size_t i = 0; i < size; i++) better[i] += step[i];
    if (info_.n_perturbed > 0) moved = relative_size(step, better, nrhs);
    const Error next = measure(better.data());
    if (!(next.excess() < std::max(error.excess(), 1.0))) break;
    std::copy(better.begin(), better.end(), x);
    goes_on = !(moved <= std::sqrt(eps<T>)) || (!(next.excess() <= 1) && next.excess() < 0.5 * error.excess());
    error = next;
    steps++;
  }
  std::lock_guard lock(use_.counts);
  stats_.n_refinement += steps;
  stats_.backward_error = error.normwise;
  return moved <= 0.1 && error.normwise <= accept_below<T> && error.rowwise <= rowwise_below<T>;
}

// Nothing is left to be tried after partial pivoting, and nothing helps where b is not finite.
template <class T> bool Factor<T>::can_repivot(idx nrhs, const T* b) const {
  return n_resorts_ < most_resorts && !symbolic_->cholesky && options_.pivoting != Pivoting::fixed &&
         all_finite(b, (off)A_.n * nrhs);
}

// With pivots chosen anew until the solution is accurate. Where it ends up out of range that is no fault of the pivots,
// as a rule, and those before come back; the last step can be taken again.
template <class T> void Factor<T>::solve_by_ladder(Trans trans, idx nrhs, const T* b, T* x) {
  const Factored before = factored();
  while (!checked_solve(trans, nrhs, b, x) && can_repivot(nrhs, b)) {
    use_partial_pivoting();
    decide_checks(true);
  }
  if (all_finite(x, (off)A_.n * nrhs) || !all_finite(b, (off)A_.n * nrhs)) return;
  if (!front_ && column_->is_wide()) wide_ = factored(), n_resorts_ = most_resorts - 1;
  hold(before);
  decide_checks(true);
}

template <class T> bool Factor<T>::solve(Trans trans, idx nrhs, const T* b, T* x) {
  const Stopwatch watch;
  const off size = (off)A_.n * nrhs;
  std::shared_lock shared = held();
  bool good = !must_measure(trans);
  if (good) {
    const RangeFlags flags;
    engine_solve(trans, nrhs, b, x);
    if (front_ || flags.overflow() || flags.underflow())  // threads of fronts have flags of their own
      for (idx k = 0; good && k < nrhs; k++) good = in_range(trans, b + (off)k * A_.n, x + (off)k * A_.n);
    if (!good && options_.refine == Refine::never) solve_in_range(trans, nrhs, b, x);
  }
  if (!good && options_.refine != Refine::never && !checked_solve(trans, nrhs, b, x) && can_repivot(nrhs, b)) {
    shared.unlock();
    const UseLock::Exclusive own = use_.exclusive();
    if (lost_) throw std::bad_alloc();
    solve_by_ladder(trans, nrhs, b, x);
  }
  std::lock_guard lock(use_.counts);
  stats_.solve_seconds = watch.seconds();
  if (good || !all_finite(b, size)) return true;
  const bool measured = options_.refine != Refine::never && options_.pivoting != Pivoting::fixed;
  return all_finite(x, size) && !(measured && stats_.backward_error > rowwise_below<T>);
}

#define GS_INSTANTIATE(T)                                                \
  template void Factor<T>::engine_solve(Trans, idx, const T*, T*) const; \
  template bool Factor<T>::checked_solve(Trans, idx, const T*, T*);      \
  template bool Factor<T>::solve(Trans, idx, const T*, T*);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
