#include "certify/accuracy_policy.hpp"

#include <algorithm>
#include <cmath>

#include "matrix/modulus.hpp"

namespace gs {
namespace {

constexpr double accept_below = 100;               // errors, in units of the precision
constexpr double trusted_below = 16;               // bound of errors, in the same
constexpr double sampled_below = 2. / 3;           // bound of errors, in the same units
constexpr unsigned first_samples = 4, every = 16;  // solves
constexpr double other_bound = 2;                  // a bound larger by this factor means that other errors are possible
constexpr double helpful = 0.5;                    // a step leaves at most this part of the error
constexpr double first_digit = 0.1;  // the last step of a suspect factor must not change this digit of the solution
constexpr double growth_allowance = 100;
constexpr double least_threshold = 1e-3, fallback_threshold = 0.5;

}  // namespace

double AccuracyPolicy::half_precision() const { return std::sqrt(eps_); }

// Error relative to the level that needs no refinement; NaN if a norm is NaN.
double AccuracyPolicy::excess(const SolveError& error) const {
  return max_or_nan(error.normwise, error.rowwise) / (refine_above * eps_);
}

// Residuals may be small although the solution is wrong, so refinement continues until the steps are small.
bool AccuracyPolicy::must_converge(const PivotReport& pivots) const {
  return pivots.n_perturbed > 0 || !(eps_ * pivots.max_multiplier < half_precision());
}

bool AccuracyPolicy::is_suspect(const PivotReport& pivots) const {
  return must_converge(pivots) || !(eps_ * pivots.growth < half_precision());
}

// A tiny pivot of a front may mean that A is singular, which only pivoting over whole columns can detect.
Decision AccuracyPolicy::after_factorization(const PivotReport& pivots, bool measured) const {
  if (pivots.failed) return Decision::choose_pivots;
  if (pivoting_ == Pivoting::fixed) return Decision::accept;
  if (pivots.n_tiny > 0) return Decision::choose_pivots;
  if (measured) return Decision::accept;
  const bool bounded = !pivots.restricted_pivoting || pivots.error_bound < half_precision();
  return is_suspect(pivots) || !bounded ? Decision::solve_known_system : Decision::accept;
}

// The bound ignores how rounding errors accumulate in long sums, so the first solve is measured even if the bound is
// good. Most bounds are hundreds of times the actual errors: if the first solves were accurate, samples may be enough.
Trust AccuracyPolicy::trust(const PivotReport& pivots) const {
  if (pivots.n_perturbed > 0) return Trust::none;
  if (pivots.error_bound <= trusted_below * eps_) return Trust::one;
  return pivots.error_bound <= std::pow(eps_, sampled_below) && !is_suspect(pivots) ? Trust::samples : Trust::none;
}

bool AccuracyPolicy::must_measure(Trust trust, const SolveHistory& seen) const {
  if (refine_ != Refine::automatic) return refine_ == Refine::always;
  if (trust == Trust::one) return seen.n_accurate == 0;
  return trust == Trust::none || seen.known != SolveHistory::accurate || seen.n_accurate % every == 0;
}

// In a norm, one large unknown hides the errors of all others, and typical right-hand sides often produce one. Unknowns
// of equal size hide nothing.
bool AccuracyPolicy::needs_known_system(Trust trust, const SolveHistory& seen) const {
  const bool sampled = refine_ == Refine::automatic && trust == Trust::samples;
  return sampled && seen.known == SolveHistory::unsolved && seen.n_accurate >= first_samples;
}

bool AccuracyPolicy::is_outdated(const SolveHistory& seen, double error_bound) const {
  if (seen.known == SolveHistory::accurate) return error_bound > other_bound * seen.bound;
  return seen.known == SolveHistory::inaccurate && error_bound * other_bound < seen.bound;
}

bool AccuracyPolicy::is_enough(double error) const { return excess({error}) <= 1; }

// Partial pivoting by rows alone does not always reach more than half the digits (3e-7 for sherman2).
bool AccuracyPolicy::is_accurate(const SolveError& error) const {
  return error.normwise <= accept_below * eps_ && error.rowwise <= half_precision();
}

bool AccuracyPolicy::ones_tell(double multiplier, double growth) const {
  return eps_ * std::max(1.0, multiplier) * growth < half_precision();
}

bool AccuracyPolicy::is_inverse(double error) const { return error <= std::pow(eps_, sampled_below); }

bool AccuracyPolicy::may_be_inverse(double error) const { return error <= half_precision(); }

Refined AccuracyPolicy::refine(const PivotReport& pivots, const Refinable& solution) const {
  const bool by_rows = is_suspect(pivots), converges = must_converge(pivots);
  SolveError error = solution.measure(by_rows);
  Refined found;
  found.accurate_at_start = excess(error) <= 1;
  double correction = 0;
  for (bool goes_on = converges || !found.accurate_at_start; goes_on && found.steps < most_steps; found.steps++) {
    const double size = solution.step(converges);
    if (converges) correction = size;
    const SolveError next = solution.measure(by_rows);
    const Step came = after_step(error, next);
    if (came == Step::undo) {
      solution.go_back();
      break;
    }
    goes_on = !(correction <= half_precision()) || came == Step::again;
    error = next;
  }
  found.error = error.normwise;
  found.accurate = correction <= first_digit && is_accurate(error);
  return found;
}

Step AccuracyPolicy::after_step(const SolveError& before, const SolveError& after) const {
  if (!(excess(after) < std::max(excess(before), 1.0))) return Step::undo;
  return !(excess(after) <= 1) && excess(after) < helpful * excess(before) ? Step::again : Step::last;
}

bool AccuracyPolicy::may_choose_pivots(int n_tried, bool b_is_finite) const {
  return n_tried < n_attempts_ && pivoting_ != Pivoting::fixed && b_is_finite;
}

bool AccuracyPolicy::must_warn(double error, bool x_is_finite, bool b_is_finite) const {
  if (!b_is_finite) return false;
  return !x_is_finite || (refine_ != Refine::never && error > half_precision());
}

std::pair<double, double> small_pivots_of_fronts(double eps, idx n) { return {std::sqrt(eps), n * eps}; }

double small_pivot_of_columns(double eps) { return eps * eps; }

double multiplier_bound(double pivot_threshold, double seen) {
  return growth_allowance * std::max({1.0, seen, 1 / std::max(pivot_threshold, least_threshold)});
}

double pivot_threshold_of(Fallback fallback, double given) {
  if (fallback == Fallback::whole_columns) return given;
  return fallback < Fallback::unscaled ? std::max(given, fallback_threshold) : 1;
}

bool is_singular_by(Fallback fallback, bool underflow) {
  return fallback == Fallback::wide || (fallback == Fallback::unscaled && !underflow);
}

}  // namespace gs
