// Solves of a Factor: within the range of the type, measured, refined, and with new pivots where necessary.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/operation.hpp"
#include "base/range_flags.hpp"
#include "base/scalars.hpp"
#include "base/stopwatch.hpp"
#include "certify/range.hpp"
#include "matrix/modulus.hpp"
#include "matrix/products.hpp"
#include "matrix/values.hpp"
#include "numeric/factor.hpp"
#include "numeric/known_answer.hpp"

namespace gs {
namespace {

// Whether x can reveal errors: zeros have none, and errors of subnormal numbers do not count.
template <class T> bool tells_of_errors(size_t size, const T* x) {
  return std::any_of(x, x + size, [](const T& v) { return abs1(v) >= std::numeric_limits<real_t<T>>::min(); });
}

}  // namespace

template <class T> void Factor<T>::engine_solve(Trans trans, idx nrhs, const T* b, T* x) const {
  if (front_) front_->solve(trans, nrhs, b, A_.n, x, A_.n);
  else if (!column_->factored()) throw SingularError(-1);  // the attempt to choose new pivots failed
  else column_->solve(trans, nrhs, b, A_.n, x, A_.n);
}

template <class T> bool Factor<T>::in_range(Trans trans, const T* b, const T* x) const {
  const int in = trans == Trans::none ? 0 : 1;
  return stays_in_range(A_.n, b, x, scales_[in], scales_[1 - in]);
}

// Solves, and solves again for multiples of b if that leaves the range of the type.
template <class T> void Factor<T>::solve_in_range(Trans trans, idx nrhs, const T* b, T* x) const {
  engine_solve(trans, nrhs, b, x);
  if (!front_ && column_->is_wide()) return;
  for (idx k = 0; k < nrhs; k++, b += A_.n, x += A_.n)
    if (!in_range(trans, b, x))
      solve_multiples<T>(A_.n, b, x, scale_of_rows(trans),
                         [&](const T* multiple, T* solution) { engine_solve(trans, 1, multiple, solution); });
}

// Measures the normwise backward error ||b - op(A) x|| / (||op(A)|| ||x|| + ||b||), the largest over the columns, and
// with `by_rows` also the error of single rows; r gets the residual.
template <class T> SolveError Factor<T>::measure(Trans trans, idx nrhs, const T* b, const T* x, bool by_rows, T* r) {
  const double norm_of_A = norm(trans);
  const std::vector<double>& scale = scale_of_rows(trans);
  // the residual where entries of x or products underflow to the last bit; sums of entries may overflow
  const double last_bits =
      std::numeric_limits<real_t<T>>::denorm_min() * (A_.n + std::min(norm_of_A, std::numeric_limits<double>::max()));
  std::vector<ResidualNorms> norms(nrhs);
  residual(A_, values_.data(), trans, x, b, r, nrhs, norms.data());
  SolveError error;
  for (ResidualNorms& column : norms) {
    if (column.residual <= last_bits) column.residual = 0;
    error.normwise = max_or_nan(error.normwise, backward_error(column, norm_of_A));
  }
  if (by_rows)
    error.rowwise = rowwise_error(A_, values_.data(), trans, x, b, r, scale.empty() ? nullptr : scale.data(), nrhs);
  return error;
}

// Solves, measures, and refines by the accuracy policy.
template <class T> Refined Factor<T>::checked_solve(Trans trans, idx nrhs, const T* b, T* x) {
  const size_t size = (size_t)A_.n * nrhs;
  std::vector<T> r(size), step, kept;
  solve_in_range(trans, nrhs, b, x);
  const auto refined_step = [&](bool sized) {
    step.resize(size);
    solve_in_range(trans, nrhs, r.data(), step.data());
    kept.assign(x, x + size);
    for (size_t i = 0; i < size; i++) x[i] += step[i];
    return sized ? relative_size(step.data(), x, A_.n, nrhs) : 0;
  };
  const Refined found =
      policy_.refine(report(), {[&](bool by_rows) { return measure(trans, nrhs, b, x, by_rows, r.data()); },
                                refined_step, [&] { std::copy(kept.begin(), kept.end(), x); }});
  std::lock_guard lock(use_.counts);
  if (!found.accurate_at_start || tells_of_errors(size, x)) count_solve(trans, found.accurate_at_start);
  stats_.n_refinement += found.steps;
  stats_.backward_error = found.error;
  return found;
}

// `accurate`: before any refinement, as far as known. The caller holds use_.counts.
template <class T> void Factor<T>::count_solve(Trans trans, bool accurate) {
  SolveHistory& seen = seen_[trans != Trans::none];
  if (accurate) seen.n_accurate++;
  else if (seen.known == SolveHistory::inaccurate) seen.n_accurate = 0;
  else seen = {};
}

template <class T> Refined Factor<T>::solve_known_system(Trans trans) {
  const std::vector<T> known = known_answer<T>(A_.n, largest_);
  std::vector<T> b(A_.n), x(A_.n);
  multiply(A_, values_.data(), trans, known.data(), b.data(), 1);
  return checked_solve(trans, 1, b.data(), x.data());
}

template <class T> void Factor<T>::try_known_system(Trans trans) {
  SolveHistory& seen = seen_[trans != Trans::none];
  {
    std::lock_guard lock(use_.counts);
    if (!policy_.needs_known_system(trust_, seen)) return;
  }
  const bool accurate = solve_known_system(trans).accurate_at_start;
  std::lock_guard lock(use_.counts);
  seen.known = accurate ? SolveHistory::accurate : SolveHistory::inaccurate;
  seen.bound = error_bound();
}

template <class T> bool Factor<T>::can_repivot(idx nrhs, const T* b) const {
  return policy_.may_choose_pivots(n_fallbacks_, all_finite(b, (off)A_.n * nrhs));
}

// Chooses new pivots until the solution is accurate. A solution out of range is usually not the fault of the pivots, so
// the previous ones are then restored, as they are after an interrupt; the last step can be taken again.
template <class T> double Factor<T>::solve_by_policy(Trans trans, idx nrhs, const T* b, T* x) {
  const Factored before = factored();
  const int n_fallbacks_before = n_fallbacks_;
  Refined found = checked_solve(trans, nrhs, b, x);
  try {
    while (!found.accurate && can_repivot(nrhs, b)) {
      choose_pivots_again();
      decide_checks(true);
      found = checked_solve(trans, nrhs, b, x);
    }
  } catch (const Interrupted&) {
    hold(before), n_fallbacks_ = n_fallbacks_before;
    decide_checks(true);
    throw;
  }
  if (all_finite(x, (off)A_.n * nrhs) || !all_finite(b, (off)A_.n * nrhs)) return found.error;
  if (!front_ && column_->is_wide()) wide_ = factored(), n_fallbacks_ = n_fallbacks - 1;
  hold(before);
  decide_checks(true);
  return found.error;
}

template <class T> bool Factor<T>::solve(Trans trans, idx nrhs, const T* b, T* x) {
  const Stopwatch watch;
  const off size = (off)A_.n * nrhs;
  double error = 0;
  UseLock::Shared shared = held();
  bool good = !must_measure(trans);
  if (good) {
    const RangeFlags flags;
    engine_solve(trans, nrhs, b, x);
    if (front_ || flags.overflow() || flags.underflow())  // the threads of fronts have their own flags
      for (idx k = 0; good && k < nrhs; k++) good = in_range(trans, b + (off)k * A_.n, x + (off)k * A_.n);
    if (!good && options_.refine == Refine::never) solve_in_range(trans, nrhs, b, x);
  }
  if (!good && options_.refine != Refine::never) {
    const Refined found = checked_solve(trans, nrhs, b, x);
    error = found.error;
    if (!found.accurate && can_repivot(nrhs, b)) {
      shared.unlock();
      const UseLock::Exclusive own = use_.exclusive();
      recover();
      error = solve_by_policy(trans, nrhs, b, x);
    } else if (!found.accurate && updated_) {
      shared.unlock();
      const UseLock::Exclusive own = use_.exclusive();
      if (refactor_updated()) error = checked_solve(trans, nrhs, b, x).error;
    } else try_known_system(trans);
  }
  {
    std::lock_guard lock(use_.counts);
    if (good || options_.refine == Refine::never) count_solve(trans, true);
    stats_.solve_seconds = watch.seconds();
  }
  return good || !policy_.must_warn(error, all_finite(x, size), all_finite(b, size));
}

#define GS_INSTANTIATE(T)                                                \
  template void Factor<T>::engine_solve(Trans, idx, const T*, T*) const; \
  template Refined Factor<T>::checked_solve(Trans, idx, const T*, T*);   \
  template bool Factor<T>::solve(Trans, idx, const T*, T*);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
