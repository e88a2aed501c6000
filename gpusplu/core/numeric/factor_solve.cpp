// Solves of a Factor: within the range of the type, measured, refined, and with new pivots where necessary.
#include <algorithm>
#include <cstring>
#include <limits>

#include "base/operation.hpp"
#include "base/range_flags.hpp"
#include "base/stopwatch.hpp"
#include "certify/range.hpp"
#include "matrix/modulus.hpp"
#include "matrix/products.hpp"
#include "matrix/values.hpp"
#include "numeric/error_checks.hpp"
#include "numeric/factor.hpp"

namespace gs {
namespace {

// Whether x can reveal errors: zeros have none, and errors of subnormal numbers do not count.
template <class T> bool tells_of_errors(size_t size, const T* x) {
  return std::any_of(x, x + size, [](const T& v) { return abs1(v) >= std::numeric_limits<real_t<T>>::min(); });
}

}  // namespace

void Factor::unchecked_solve(Trans trans, idx nrhs, const void* b, void* x) const {
  if (!front_ && !column_->factored()) throw SingularError(-1);  // the attempt to choose new pivots failed
  numeric().solve(trans, nrhs, b, x);
}

bool Factor::in_range(Trans trans, idx nrhs, const void* b, const void* x) const {
  const int in = trans == Trans::none ? 0 : 1;
  return typed([&]<class T>(T) {
    for (off k = 0; k < nrhs; k++)
      if (!stays_in_range(A_.n, (const T*)b + k * A_.n, (const T*)x + k * A_.n, scales_[in], scales_[1 - in]))
        return false;
    return true;
  });
}

bool Factor::all_are_finite(idx nrhs, const void* x) const {
  return typed([&]<class T>(T) { return all_finite((const T*)x, (off)A_.n * nrhs); });
}

// Solves, and solves again for multiples of b if that leaves the range of the type.
void Factor::solve_in_range(Trans trans, idx nrhs, const void* b, void* x) const {
  unchecked_solve(trans, nrhs, b, x);
  if (is_wide()) return;
  typed([&]<class T>(T) {
    const T* given = (const T*)b;
    T* solution = (T*)x;
    for (idx k = 0; k < nrhs; k++, given += A_.n, solution += A_.n)
      if (!in_range(trans, 1, given, solution))
        solve_multiples<T>(A_.n, given, solution, scale_of_rows(trans),
                           [&](const T* multiple, T* into) { unchecked_solve(trans, 1, multiple, into); });
  });
}

// Measures the normwise backward error ||b - op(A) x|| / (||op(A)|| ||x|| + ||b||), the largest over the columns, and
// with `by_rows` also the error of single rows; r gets the residual.
SolveError Factor::measure(Trans trans, idx nrhs, const void* b, const void* x, bool by_rows, void* r) {
  const double norm_of_A = norm(trans);
  const std::vector<double>& scale = scale_of_rows(trans);
  // the residual where entries of x or products underflow to the last bit; sums of entries may overflow
  const double last_bits = precision_.least * (A_.n + std::min(norm_of_A, std::numeric_limits<double>::max()));
  std::vector<ResidualNorms> norms(nrhs);
  SolveError error;
  typed([&]<class T>(T) {
    const T *given = (const T*)b, *solution = (const T*)x;
    residual(A_, values_as<T>(), trans, solution, given, (T*)r, nrhs, norms.data());
    if (by_rows)
      error.rowwise = rowwise_error(A_, values_as<T>(), trans, solution, given, (const T*)r,
                                    scale.empty() ? nullptr : scale.data(), nrhs);
  });
  for (ResidualNorms& column : norms) {
    if (column.residual <= last_bits) column.residual = 0;
    error.normwise = max_or_nan(error.normwise, backward_error(column, norm_of_A));
  }
  return error;
}

// Solves, measures, and refines by the accuracy policy.
Refined Factor::checked_solve(Trans trans, idx nrhs, const void* b, void* x) {
  const std::size_t size = (std::size_t)A_.n * nrhs, bytes = size * precision_.bytes;
  RawVector<std::byte> r(bytes), step, kept;
  solve_in_range(trans, nrhs, b, x);
  const auto refined_step = [&](bool sized) {
    step.resize(bytes);
    solve_in_range(trans, nrhs, r.data(), step.data());
    kept.resize(bytes);
    std::memcpy(kept.data(), x, bytes);
    return typed([&]<class T>(T) {
      const T* const change = (const T*)step.data();
      T* const solution = (T*)x;
      for (std::size_t i = 0; i < size; i++) solution[i] += change[i];
      return sized ? relative_size(change, solution, A_.n, nrhs) : 0;
    });
  };
  const Refined found =
      policy_.refine(report(), {[&](bool by_rows) { return measure(trans, nrhs, b, x, by_rows, r.data()); },
                                refined_step, [&] { std::memcpy(x, kept.data(), bytes); }});
  std::lock_guard lock(use_.counts);
  if (!found.accurate_at_start || typed([&]<class T>(T) { return tells_of_errors(size, (const T*)x); }))
    count_solve(trans, found.accurate_at_start);
  stats_.n_refinement += found.steps;
  stats_.backward_error = found.error;
  return found;
}

// `accurate`: before any refinement, as far as known. The caller holds use_.counts.
void Factor::count_solve(Trans trans, bool accurate) {
  SolveHistory& seen = seen_[trans != Trans::none];
  if (accurate) seen.n_accurate++;
  else if (seen.known == SolveHistory::inaccurate) seen.n_accurate = 0;
  else seen = {};
}

Refined Factor::solve_known_system(Trans trans) {
  RawVector<std::byte> b(A_.n * precision_.bytes), x(b.size());
  typed([&]<class T>(T) {
    const std::vector<T> known = known_answer<T>(A_.n, largest_);
    multiply(A_, values_as<T>(), trans, known.data(), (T*)b.data(), 1);
  });
  return checked_solve(trans, 1, b.data(), x.data());
}

void Factor::try_known_system(Trans trans) {
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

bool Factor::can_repivot(idx nrhs, const void* b) const {
  return policy_.may_choose_pivots(n_fallbacks_, all_are_finite(nrhs, b));
}

// Chooses new pivots until the solution is accurate. A solution out of range is usually not the fault of the pivots, so
// the previous ones are then restored, as they are after an interrupt; the last step can be taken again.
double Factor::solve_by_policy(Trans trans, idx nrhs, const void* b, void* x) {
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
  if (all_are_finite(nrhs, x) || !all_are_finite(nrhs, b)) return found.error;
  if (is_wide()) wide_ = factored(), n_fallbacks_ = n_fallbacks - 1;
  hold(before);
  decide_checks(true);
  return found.error;
}

bool Factor::solve(Trans trans, idx nrhs, const void* b, void* x) {
  const Stopwatch watch;
  double error = 0;
  UseLock::Shared shared = held();
  bool good = !must_measure(trans);
  if (good) {
    const RangeFlags flags;
    unchecked_solve(trans, nrhs, b, x);
    if (front_ || flags.overflow() || flags.underflow())  // the threads of fronts have their own flags
      good = in_range(trans, nrhs, b, x);
    if (!good && options_.refine == Refine::never) solve_in_range(trans, nrhs, b, x);
  }
  if (!good && options_.refine != Refine::never) {
    const Refined found = checked_solve(trans, nrhs, b, x);
    error = found.error;
    if (!found.accurate && can_repivot(nrhs, b)) {
      shared.unlock();
      const UseLock::Exclusive own = use_.exclusive();  // another thread may have changed the factor meanwhile
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
  return good || !policy_.must_warn(error, all_are_finite(nrhs, x), all_are_finite(nrhs, b));
}

}  // namespace gs
