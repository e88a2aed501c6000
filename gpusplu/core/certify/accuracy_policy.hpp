// What counts as safe, and what is done where something is not: the one set of rules that every engine goes by.
//
// An engine asks an `AccuracyPolicy` after a factorization (are these pivots fit?), before a solve (is it measured?),
// has it refine a solution, and asks what to do where that was not enough: choose pivots anew, or warn. It supplies
// what it measured, and knows no threshold itself. Reasons are in docs/internals/decisions, 0003-certified-answers.md,
// how one object came to serve processors and devices in 0020-one-ladder.md.
#pragma once
#include <functional>
#include <utility>

#include "base/types.hpp"
#include "certify/accuracy.hpp"

namespace gs {

enum class Pivoting { automatic, fixed, partial };  // fixed: not to leave the analysed pivot order
enum class Refine { automatic, always, never };

// What a factorization says of itself.
struct PivotReport {
  bool failed = false;  // no pivot or numbers out of range, or pivots that do not suit these values any more
  bool restricted_pivoting = false;  // pivots were sought in a part of their column only
  idx n_perturbed = 0;               // pivots replaced by a larger one
  idx n_tiny = 0;                    // of these, small enough to mean a singular matrix
  double max_multiplier = 0;         // max |L|
  double growth = 0;                 // of entries beside those of the scaled matrix, where it is known
  double error_bound = 0;            // of the backward error, modelled; 0 where it is not
};

enum class Decision { accept, solve_known_system, choose_pivots };

// Ways to choose pivots anew, in the order in which they are tried: where fronts looked for them in a part of each
// column, among whole ones with the threshold of a first factorization; with a larger one of the matrix as matching
// scales it, with scales of half the range, of the matrix as it is, and of that in numbers that never leave the range.
enum class Fallback { whole_columns, scaled, less_scaled, unscaled, wide };
constexpr int n_fallbacks = 5;
// Multiply-adds, counted as 2, that are done in numbers of any exponent: a second or two.
constexpr double worth_wide_numbers = 1e8;

// Backward errors of a solution, the largest over its columns; by rows only where that was asked for.
struct SolveError {
  double normwise = 0, rowwise = 0;
};

// A solution that can be measured and refined.
struct Refinable {
  std::function<SolveError(bool by_rows)> measure;
  // Solves for the residual and adds that. With `sized`: the largest entry of the step beside that of the new solution.
  std::function<double(bool sized)> step;
  std::function<void()> go_back;  // to the solution before the last step
};

struct Refined {
  double error = 0;                // normwise, of what is left
  int steps = 0;                   // that were kept
  bool accurate_at_start = false;  // accurate before any of them
  bool accurate = false;           // at the end
};

// What a factorization says about the solves to come: each may be inaccurate; errors are bounded, so that samples do
// once all were accurate that were looked at; errors are bounded so well that one accurate solve is enough.
enum class Trust { none, samples, one };

// What is known of the solves in one direction, with factors of the same pivots.
struct SolveHistory {
  // Since the last that was not accurate before any refinement, those among them that were not measured too.
  unsigned n_accurate = 0;
  enum Known { unsolved, accurate, inaccurate } known = unsolved;  // a system with a known answer, before refinement
  double bound = 0;                                                // of errors, when that was solved
};

// What comes of a step of refinement: it is taken back, it was the last, another one may help.
enum class Step { undo, last, again };

constexpr int most_steps = 3;  // of refinement

class AccuracyPolicy {
 public:
  AccuracyPolicy(double eps, Pivoting pivoting, Refine refine, int n_attempts)
      : eps_(eps), pivoting_(pivoting), refine_(refine), n_attempts_(n_attempts) {}

  // Whether factors are accurate to fewer digits than the precision has in the matrix as it was scaled. Of that a norm
  // may show nothing, where rows or unknowns differ much in size, so that errors are measured row by row.
  bool is_suspect(const PivotReport& pivots) const;
  // `measured`: every solve is going to be; others need a system with a known answer now.
  Decision after_factorization(const PivotReport& pivots, bool measured) const;
  Trust trust(const PivotReport& pivots) const;
  bool must_measure(Trust trust, const SolveHistory& seen) const;
  // After a measured solve: whether a system with a known answer has to say if samples do.
  bool needs_known_system(Trust trust, const SolveHistory& seen) const;
  // Whether with this bound of errors what the known system has said is a thing of the past.
  bool is_outdated(const SolveHistory& seen, double error_bound) const;
  bool is_enough(double error) const;               // to need no refinement
  bool is_accurate(const SolveError& error) const;  // to be handed out, once refinement has done what it can
  // Whether entries of A^-1 need no other pivots, and whether they can be given out at all. `error`: of the diagonals
  // of A^-1 A and A A^-1, beside the sums of the absolute values of their terms.
  bool is_inverse(double error) const;
  bool may_be_inverse(double error) const;
  // Whether that can be asked: an error beside a small entry of A is not seen, and large `multiplier`s of pivots and
  // `growth` of entries make such. Neither depends on how large A is.
  bool ones_tell(double multiplier, double growth) const;
  Refined refine(const PivotReport& pivots, const Refinable& solution) const;
  // For those who refine many solutions at once, of factors that are not doubtful, at most `most_steps` steps each.
  Step after_step(const SolveError& before, const SolveError& after) const;
  // After a solve that stayed inaccurate, with `n_tried` attempts made; nothing helps where b is not finite.
  bool may_choose_pivots(int n_tried, bool b_is_finite) const;
  // What is left is not finite, or not accurate whatever was tried: the caller has to be warned.
  bool must_warn(double error, bool x_is_finite, bool b_is_finite) const;

 private:
  double half_precision() const;
  double excess(const SolveError& error) const;
  bool must_converge(const PivotReport& pivots) const;

  double eps_;
  Pivoting pivoting_;
  Refine refine_;
  int n_attempts_;
};

// Pivots of a scaled front below these are perturbed, and may mean a singular matrix: rounding may have filled a zero.
std::pair<double, double> small_pivots_of_fronts(double eps, idx n);
// Pivots of scaled columns below this are replaced on a device. They were chosen by partial pivoting, so one may be
// small where its column is, and growth tells the others; this one may as well be zero.
double small_pivot_of_columns(double eps);
// Multipliers beyond this mean that pivots, chosen with this threshold, with which `seen` was the largest multiplier,
// do not suit new values.
double multiplier_bound(double pivot_threshold, double seen);
// Threshold of a way to choose pivots anew.
double pivot_threshold_of(Fallback fallback, double given);
// And on a diagonal that was kept because it is good, unless the caller says one: pivots off it cause fill.
constexpr double kept_diagonal_threshold = 0.01;
// Whether that a column is left without a pivot, with or without numbers that underflowed, says that A is singular.
bool is_singular_by(Fallback fallback, bool underflow);
// Errors above are refined [units of the precision].
constexpr double refine_above = 8;
// Vectors that certify an inertia, and what they may show of ||I - A (L D L^H)^-1|| (numeric/factor_inertia.cpp):
// below, both matrices have the same inertia.
constexpr idx inertia_samples = 8;
constexpr double certain_distance = 0.01;

}  // namespace gs
