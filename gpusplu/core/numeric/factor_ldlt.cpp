// LDL^T of a Factor: delayed columns, and the fallback to LU for callers that requested LU.
#include <algorithm>
#include <utility>

#include "analysis/delays.hpp"
#include "numeric/factor.hpp"

namespace gs {
namespace {

constexpr int most_delays = 8;                             // rounds of a factorization
constexpr double most_delayed = 0.01, least_delayed = 16;  // columns of a round: a fraction of all, or this number

}  // namespace

// Whether the values have the symmetry that LDL^T needs, which may differ from that of the previous values.
bool Factor::is_compatible_with_ldlt() {
  if (!options_.any_values) return true;
  if (!mirror_) mirror_ = std::make_unique<const SymmetricPairs>(A_, precision_.is_complex);
  const Symmetry symmetry = typed([&]<class T>(T) { return symmetry_of(*mirror_, values_as<T>()); });
  const bool hermitian = symmetry == Symmetry::hermitian;
  if (symmetry != Symmetry::none && hermitian != options_.hermitian) {
    options_.hermitian = hermitian;
    front_.reset();
  }
  return symmetry != Symmetry::none;
}

// Switches to LU from now on, with an analysis of the current values.
void Factor::leave_ldlt() {
  auto reanalyzed = std::make_shared<Symbolic>(analyzed(AnalyzeOptions(symbolic_->costs)));
  if (reanalyzed->structural_rank < reanalyzed->n) throw SingularError(-1);
  stats_.n_reanalyzed++;
  ldlt_.reset(), front_.reset(), column_.reset(), mirror_.reset();
  take(std::move(reanalyzed));
}

// LU by fronts may succeed where LDL^T does not, at a fraction of the cost of column LU. The current factor stays if
// this throws.
void Factor::choose_pivots_again() {
  if (!(symbolic_->ldlt && options_.any_values)) return use_partial_pivoting();
  const Factored before = factored();
  try {
    leave_ldlt();
    factor_by_method(true);
  } catch (...) {
    hold(before);
    throw;
  }
}

// Small pivots of LDL^T may be small in this order only: their columns find better pivots in the fronts of parents, or
// the distance of the factors shows that the perturbation of tiny pivots does not matter.
void Factor::delay_perturbed_pivots(const PivotRule& rule) {
  for (int round = 0; round < most_delays && info_.n_perturbed > 0; round++) {
    const std::vector<idx>& columns = front_->perturbed_columns();
    if (columns.empty() || columns.size() > std::max(least_delayed, most_delayed * A_.n)) break;
    stats_.n_delayed += (idx)columns.size();
    auto delayed = std::make_shared<const Symbolic>(delay_columns(*symbolic_, columns));
    front_ = make_front_factor(dtype_, delayed, A_, options_.hermitian);
    take(std::move(delayed));
    info_ = front_->factor(values_.data(), rule);
  }
  if (info_.n_tiny > 0 && distance_of_factors() < certain_distance) info_.n_tiny = 0;
}

}  // namespace gs
