// Which factors and solutions are accepted, and what happens to the others: one set of rules for all engines.
//
// An engine calls an `AccuracyPolicy` after a factorization (are the pivots acceptable?), before a solve (must it be
// measured?), to refine a solution, and after insufficient refinement (choose other pivots, or warn). The engine
// supplies measurements and contains no thresholds. Reasons are in docs/internals/decisions, 0003-certified-answers.md;
// 0020-one-ladder.md explains why CPU and device engines share one object.
#pragma once
#include <functional>
#include <utility>

#include "base/types.hpp"

namespace gs {

enum class Pivoting { automatic, fixed, partial };  // fixed: keep the analysed pivot order
enum class Refine { automatic, always, never };

// Pivoting statistics of a factorization.
struct PivotReport {
  bool failed = false;               // no pivot, numbers out of range, or pivots that no longer fit the values
  bool restricted_pivoting = false;  // pivots were sought in a part of their column only
  idx n_perturbed = 0;               // pivots replaced by a larger one
  idx n_tiny = 0;                    // of these, small enough to mean a singular matrix
  double max_multiplier = 0;         // max |L|
  double growth = 0;                 // of entries relative to the scaled matrix, if known
  double error_bound = 0;            // modelled bound of the backward error, or 0
};

enum class Decision { accept, solve_known_system, choose_pivots };

// Other pivot choices, in the order in which they are tried. If fronts searched a part of each column: whole columns
// with the threshold of a first factorization. Then a larger threshold on the matrix scaled by matching, on the matrix
// with scales of half the range, on the unscaled matrix, and on that in numbers that never leave the range.
enum class Fallback { whole_columns, scaled, less_scaled, unscaled, wide };
constexpr int n_fallbacks = 5;
// Multiply-adds, counted as 2, that are affordable in numbers with any exponent: a second or two.
constexpr double worth_wide_numbers = 1e8;

// Backward errors of a solution, the largest over its columns; row-wise only on request.
struct SolveError {
  double normwise = 0, rowwise = 0;
};

// A solution that can be measured and refined.
struct Refinable {
  std::function<SolveError(bool by_rows)> measure;
  // Solves for the residual and adds the result. With `sized`: the largest entry of the step relative to that of the
  // new solution.
  std::function<double(bool sized)> step;
  std::function<void()> go_back;  // restores the solution before the last step
};

struct Refined {
  double error = 0;                // normwise, after refinement
  int steps = 0;                   // steps that were kept
  bool accurate_at_start = false;  // accurate before any of them
  bool accurate = false;           // at the end
};

// What a factorization implies for later solves. none: each may be inaccurate. samples: errors are bounded, so samples
// are enough once all measured solves were accurate. one: errors are bounded so well that one accurate solve is enough.
enum class Trust { none, samples, one };

// Statistics of the solves in one direction, with factors of the same pivots.
struct SolveHistory {
  // Since the last one that was inaccurate before refinement, including unmeasured ones.
  unsigned n_accurate = 0;
  enum Known { unsolved, accurate, inaccurate } known = unsolved;  // the known system, before refinement
  double bound = 0;                                                // bound of the errors when that system was solved
};

// Decision after a step of refinement: undo it, stop, or try another one.
enum class Step { undo, last, again };

constexpr int most_steps = 3;  // of refinement

class AccuracyPolicy {
 public:
  AccuracyPolicy(double eps, Pivoting pivoting, Refine refine, int n_attempts)
      : eps_(eps), pivoting_(pivoting), refine_(refine), n_attempts_(n_attempts) {}

  // Whether factors are accurate to fewer digits than the precision has in the matrix as it was scaled. A norm may not
  // show this if rows or unknowns differ much in size, so errors are then measured row by row.
  bool is_suspect(const PivotReport& pivots) const;
  // `measured`: every solve will be measured, as on devices; otherwise a system with a known solution is needed now.
  Decision after_factorization(const PivotReport& pivots, bool measured) const;
  Trust trust(const PivotReport& pivots) const;
  bool must_measure(Trust trust, const SolveHistory& seen) const;
  // After a measured solve: whether a system with a known solution must decide if samples are enough.
  bool needs_known_system(Trust trust, const SolveHistory& seen) const;
  // Whether this bound of errors makes the result of the known system obsolete.
  bool is_outdated(const SolveHistory& seen, double error_bound) const;
  bool is_enough(double error) const;               // needs no refinement
  bool is_accurate(const SolveError& error) const;  // acceptable as a result after refinement
  // Whether entries of A^-1 need no other pivots, and whether they can be returned at all. `error`: of the diagonals of
  // A^-1 A and A A^-1, relative to the sums of the absolute values of their terms.
  bool is_inverse(double error) const;
  bool may_be_inverse(double error) const;
  // Whether that test is meaningful: it does not see an error next to a small entry of A, and large `multiplier`s of
  // pivots and `growth` of entries produce such errors. Neither depends on the magnitude of A.
  bool ones_tell(double multiplier, double growth) const;
  Refined refine(const PivotReport& pivots, const Refinable& solution) const;
  // For batch refinement with factors that are not suspect, at most `most_steps` steps for each solution.
  Step after_step(const SolveError& before, const SolveError& after) const;
  // After a solve that stayed inaccurate, with `n_tried` attempts made; other pivots cannot help if b is not finite.
  bool may_choose_pivots(int n_tried, bool b_is_finite) const;
  // The result is not finite, or inaccurate after all attempts: the caller must be warned.
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

// Pivots of a scaled front below the first are perturbed; below the second they may mean a singular matrix: rounding
// may have filled a zero.
std::pair<double, double> small_pivots_of_fronts(double eps, idx n);
// On a device, smaller pivots of scaled columns are replaced. Partial pivoting chose them, so a pivot may be small
// because its column is, and growth detects the others; a smaller pivot may as well be zero.
double small_pivot_of_columns(double eps);
// A larger multiplier means that the pivots do not fit new values. They were chosen with this threshold, with `seen` as
// the largest multiplier.
double multiplier_bound(double pivot_threshold, double seen);
// Pivot threshold of a fallback.
double pivot_threshold_of(Fallback fallback, double given);
// Threshold for a good diagonal that was kept, unless the caller gives one: pivots off the diagonal cause fill.
constexpr double kept_diagonal_threshold = 0.01;
// Whether a column without a pivot, with or without numbers that underflowed, proves that A is singular.
bool is_singular_by(Fallback fallback, bool underflow);
// Larger errors are refined [units of the precision].
constexpr double refine_above = 8;
// Number of vectors that certify an inertia, and the largest ||I - A (L D L^H)^-1|| that they may show
// (numeric/factor.cpp): below it, both matrices have the same inertia.
constexpr idx inertia_samples = 8;
constexpr double certain_distance = 0.01;

}  // namespace gs
