#include "numeric/factor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "analysis/graph.hpp"
#include "analysis/structure.hpp"
#include "base/operation.hpp"
#include "base/range_flags.hpp"
#include "base/stopwatch.hpp"
#include "matrix/modulus.hpp"
#include "matrix/products.hpp"
#include "matrix/scales.hpp"
#include "matrix/values.hpp"
#include "numeric/error_checks.hpp"
#include "numeric/peak_memory.hpp"

namespace gs {
namespace {

std::shared_ptr<Symbolic> require_full_rank(Symbolic symbolic) {
  if (symbolic.structural_rank < symbolic.n) throw SingularError(-1);
  return std::make_shared<Symbolic>(std::move(symbolic));
}

}  // namespace

Factor::Factor(Dtype dtype, std::shared_ptr<const Symbolic> symbolic, PatternView A, const void* values,
               const FactorOptions& options)
    : dtype_(dtype),
      precision_(typed([]<class T>(T) { return precision_of<T>; })),
      A_(A),
      values_(A.nnz() * precision_.bytes),
      options_(options),
      policy_(precision_.eps, options.pivoting, options.refine, symbolic->cholesky ? 0 : n_fallbacks) {
  if (!values_.empty()) std::memcpy(values_.data(), values, values_.size());
  take(typed([&]<class T>(T) { return with_scales_of<T>(std::move(symbolic)); }));
  if (symbolic_->structural_rank < symbolic_->n) throw SingularError(-1);
  const Stopwatch watch;
  largest_ = typed([&]<class T>(T) { return largest_part(values_as<T>(), A_.nnz()); });
  factor(true);
  stats_.factor_seconds = watch.seconds();
}

Factor::~Factor() = default;

void Factor::take(std::shared_ptr<const Symbolic> symbolic) {
  symbolic_ = std::move(symbolic);
  if (symbolic_->ldlt) ldlt_ = symbolic_;
  triangular_ |= symbolic_->method == Method::column && (off)symbolic_->block_ptr.size() == off(A_.n) + 1;
  scales_[0] = range_of(symbolic_->row_scale), scales_[1] = range_of(symbolic_->col_scale);
}

const std::vector<double>& Factor::scale_of_rows(Trans trans) const {
  return trans == Trans::none ? symbolic_->row_scale : symbolic_->col_scale;
}

void Factor::hold(Factored other) {
  column_ = std::move(other.column), front_ = std::move(other.front), info_ = other.info;
  take(std::move(other.symbolic));
}

double Factor::norm(Trans trans) {
  std::lock_guard lock(use_.counts);
  double& norm = norms_[trans != Trans::none];
  if (norm < 0) norm = typed([&]<class T>(T) { return norm_inf(A_, values_as<T>(), trans); });
  return norm;
}

void Factor::factor(bool fresh) {
  const auto symbolic_before = symbolic_;
  begin_phase("factor");
  n_fallbacks_ = 0, wide_ = {};
  updated_ = false;
  if (ldlt_ && !is_compatible_with_ldlt()) {
    leave_ldlt();
    fresh = true;
  } else if (ldlt_ && !symbolic_->ldlt) {
    column_.reset();
    take(ldlt_);
    fresh = true;
  }
  factor_by_method(fresh);
  decide_checks(fresh || symbolic_ != symbolic_before);
}

void Factor::factor_by_method(bool fresh) {
  if (symbolic_->method == Method::front) {
    factor_front(fresh);
  } else {
    if (!fresh) {
      info_ = column_->refactor(values_.data());
      if (!certified() || scales_mislead()) fresh = true, stats_.n_repivoted++;
    }
    // new values may be out of the range of old scales: only an analysis with new scales can detect singularity
    if (fresh && !factor_first()) use_partial_pivoting();
  }
}

// The computed factors are those of A + E with |E| <= c eps Dr^-1 |L| |U| Dc^-1 (Higham, Accuracy and Stability of
// Numerical Algorithms, theorem 9.3), so this bounds ||E|| / ||A|| up to a modest c: unscaling multiplies rounding
// errors of the scaled matrix by at most the reciprocals of the smallest scales.
double Factor::error_bound() const {
  if (symbolic_->cholesky || !(largest_ > 0)) return precision_.eps;
  const double growth = std::max(1.0, info_.max_multiplier) * info_.pivot_growth * info_.max_entry;
  return precision_.eps * growth / (scales_[0].least * scales_[1].least) / largest_;
}

PivotReport Factor::report() const { return report_of(info_, symbolic_->cholesky, front_ != nullptr, error_bound()); }

// Whether the scales of an analysis leave rows of these values far smaller than the others, so that errors that are
// small relative to large entries are not small relative to these rows: L U is then A up to errors that hide them. A
// pass over the values pays only if the error bound is poor anyway.
bool Factor::scales_mislead() const {
  const double half_precision = std::sqrt(precision_.eps);
  if (options_.pivoting == Pivoting::fixed || symbolic_->row_scale.empty() || error_bound() < half_precision)
    return false;
  return !(precision_.eps * spread() < half_precision);
}

double Factor::spread() const {
  return typed(
      [&]<class T>(T) { return spread_of_rows(A_, values_as<T>(), symbolic_->row_scale, symbolic_->col_scale); });
}

// The first solves in either direction are measured; later factorizations with the same pivots continue that history.
void Factor::decide_checks(bool fresh) {
  const PivotReport pivots = report();
  trust_ = policy_.trust(pivots);
  triangles_fit_ = false, triangles_.reset(), own_order_.clear();
  norms_[0] = norms_[1] = -1;
  for (SolveHistory& seen : seen_)
    if (fresh || policy_.is_outdated(seen, pivots.error_bound)) seen = {};
}

bool Factor::must_measure(Trans trans) {
  // Cholesky is backward stable: only the first solve after an update of the factor is measured.
  if (symbolic_->cholesky) return policy_.must_measure(Trust::one, {.n_accurate = updated_ ? 0u : 1u});
  std::lock_guard lock(use_.counts);
  return policy_.must_measure(trust_, seen_[trans != Trans::none]);
}

// Factors with the pivots of a first factorization. Returns whether they are acceptable; if a kept diagonal is not, a
// matching replaces it.
bool Factor::factor_first() {
  const auto fits = [&](double threshold) { return factor_column(threshold) && certified() && !scales_mislead(); };
  if (symbolic_->keeps_diagonal) {
    const double given = options_.pivot_threshold;
    const double threshold = given == FactorOptions{}.pivot_threshold ? kept_diagonal_threshold : given;
    if (fits(threshold)) return true;
    auto reanalyzed = require_full_rank(analysis_by_columns(true));
    stats_.n_reanalyzed++;
    column_.reset();
    take(std::move(reanalyzed));
  }
  return fits(options_.pivot_threshold);
}

// Returns whether the factorization succeeded.
bool Factor::factor_column(double threshold) {
  if (!column_) require_host_memory(*symbolic_, dtype_);
  if (!column_) column_ = make_column_lu(dtype_, *symbolic_, A_);
  info_ = column_->factor(values_.data(), {threshold});
  return info_.status == FactorInfo::ok;
}

// `fresh`: first factorization with the current analysis; `reanalyzed`: that analysis was made for these values.
void Factor::factor_front(bool fresh, bool reanalyzed) {
  if (!front_) require_host_memory(*symbolic_, dtype_);
  if (!front_) front_ = make_front_factor(dtype_, symbolic_, A_, options_.hermitian);
  const auto [perturb_below, tiny_below] = small_pivots_of_fronts(precision_.eps, A_.n);
  const PivotRule rule{perturb_below, tiny_below};
  info_ = front_->factor(values_.data(), rule, true);
  if (info_.flushed && !zeros_are_harmless()) info_ = front_->factor(values_.data(), rule);
  if (symbolic_->ldlt && info_.n_perturbed > 0) delay_perturbed_pivots(rule);
  if (symbolic_->cholesky) {
    if (info_.status != FactorInfo::ok) throw NotPositiveDefinite(info_.column, info_.min_pivot);
    return;
  }
  const bool misled = !reanalyzed && scales_mislead();
  if (!misled && certified()) return;
  if (!misled && (fresh || (symbolic_->ldlt && options_.symmetric))) return choose_pivots_again();
  AnalyzeOptions again(symbolic_->costs);  // the matching was made for older values
  again.method = MethodChoice::front;
  again.ldlt = symbolic_->ldlt;
  auto other = require_full_rank(analyzed(again));
  stats_.n_reanalyzed++;
  front_.reset();
  take(std::move(other));
  factor_front(true, true);
}

// Whether the entries flushed to zero are far below the rounding errors of every row. A flushed product is less than
// the smallest normal number, and so is a flushed entry of a factor; the entry that multiplies it is less than the root
// of an entry (Cholesky) or bounded by the monitored growth.
bool Factor::zeros_are_harmless() const {
  const double bound = precision_.least_normal / (precision_.eps * precision_.eps);
  return info_.max_entry / spread() > bound * std::max(1.0, info_.max_entry);
}

// Whether the checks of solve() suffice for the factor. A triangular matrix is its own factor, without errors, and has
// no other pivots. A system with a known solution would only measure the growth of its entries.
bool Factor::certified() {
  if (triangular_ && info_.status == FactorInfo::ok) return true;
  const Decision decision = policy_.after_factorization(report(), false);
  if (decision != Decision::solve_known_system) return decision == Decision::accept;
  norms_[0] = norms_[1] = -1;
  return solve_known_system(Trans::none).accurate;
}

Symbolic Factor::analyzed(const AnalyzeOptions& options) const {
  return typed([&]<class T>(T) { return analyze(A_, values_as<T>(), options); });
}

// Analysis for column LU of the current values; it keeps the caller's order of columns. Only a matching can detect that
// a matrix is triangular in another order.
Symbolic Factor::analysis_by_columns(bool matching) const {
  AnalyzeOptions by_columns(symbolic_->costs);
  by_columns.method = MethodChoice::column;
  by_columns.matching = matching || triangular_;
  by_columns.keep_diagonal = false;
  const bool in_order = column_ && (symbolic_->ordering == "natural" || symbolic_->ordering == "user");
  const std::vector<idx>& order = in_order ? symbolic_->col_perm : options_.own_order;
  if (!order.empty()) by_columns.ordering = "user", by_columns.user_perm = order.data();
  Symbolic reanalyzed = analyzed(by_columns);
  if (!order.empty()) reanalyzed.ordering = symbolic_->ordering;
  return reanalyzed;
}

// Without scales, as in SuperLU. One common scale keeps numbers away from the ends of the range: sums of two parts
// overflow at one end, reciprocals at the other.
Symbolic Factor::unscaled_analysis() const {
  Symbolic reanalyzed = analysis_by_columns(false);
  reanalyzed.row_scale.clear(), reanalyzed.col_scale.clear();
  const int top = precision_.max_exponent - 16, bottom = precision_.min_exponent + 32;
  const int exponent = largest_ > 0 ? std::ilogb(largest_) : 0;
  const int shift = exponent > top ? top - exponent : exponent < bottom ? -exponent : 0;
  if (shift != 0) {
    reanalyzed.row_scale.assign(A_.n, std::ldexp(1.0, shift / 2));
    reanalyzed.col_scale.assign(A_.n, std::ldexp(1.0, shift - shift / 2));
  }
  return reanalyzed;
}

// Column LU with partial pivoting on an analysis of the current values, by the fallbacks of the accuracy policy, until
// a solve with a known solution is accurate. The current factor stays if this throws or if pivots are out of range.
void Factor::use_partial_pivoting() {
  std::shared_ptr<Symbolic> reanalyzed;
  for (bool done = false; !done && n_fallbacks_ < n_fallbacks;) {
    const Fallback fallback = (Fallback)n_fallbacks_;
    const bool wide = fallback == Fallback::wide;
    if (fallback == Fallback::whole_columns && !front_) {
      n_fallbacks_++;
      continue;
    }
    if (wide && wide_.column) {
      n_fallbacks_++;
      return hold(wide_);
    }
    if (fallback == Fallback::less_scaled && reanalyzed) reanalyzed = std::make_shared<Symbolic>(*reanalyzed);
    else if (fallback != Fallback::scaled || !reanalyzed)
      reanalyzed = require_full_rank(fallback == Fallback::unscaled ? unscaled_analysis() : analysis_by_columns(!wide));
    if (fallback == Fallback::less_scaled && !cut_scales(*reanalyzed, (precision_.max_exponent - 2) / 2)) {
      n_fallbacks_++;
      continue;
    }
    auto column = make_column_lu(dtype_, *reanalyzed, A_);
    PivotOptions options{pivot_threshold_of(fallback, options_.pivot_threshold)};
    if (wide) options.most_flops = worth_wide_numbers;
    const RangeFlags flags;
    const FactorInfo info =
        wide ? column->factor_wide(values_.data(), options) : column->factor(values_.data(), options);
    const bool underflow = flags.underflow();
    n_fallbacks_++;  // not earlier: a step that ran out of memory is repeated
    const bool singular = info.status == FactorInfo::singular && is_singular_by(fallback, underflow);
    const bool holds = info_.status == FactorInfo::ok && (front_ || column_->factored());
    if (singular || (wide && info.status != FactorInfo::ok && !holds)) throw SingularError(info.column);
    if (info.status != FactorInfo::ok) continue;
    stats_.n_repivoted++;
    hold({reanalyzed, std::move(column), nullptr, info});
    done = certified();
  }
}

// Factors the backup values, with the given largest one, and swaps them with the current values. If it throws, it
// restores the factor of the previous values, but not after an interrupt, which leaves no time for that.
void Factor::factor_backup(double largest) {
  values_.swap(backup_);
  const auto symbolic_before = symbolic_;
  const double largest_before = largest_;
  if (!lost_) origin_ = column_ ? column_->origin() : ColumnNumeric::Origin();
  largest_ = largest;
  const auto go_back = [&](bool replace) {
    values_.swap(backup_);
    largest_ = largest_before;
    lose(symbolic_before, replace);
  };
  try {
    factor(lost_ && !has_pivots());
    go_on();
    lost_ = false;
  } catch (const std::bad_alloc&) {
    go_back(true);
    restore();
    throw;
  } catch (const Interrupted&) {
    go_back(false);
    throw;
  } catch (...) {
    go_back(false);
    restore();
    throw;
  }
}

// Checks the backup values; `largest` is their largest real or imaginary part.
void Factor::require_symmetric(double largest) {
  const bool hermitian = symbolic_->cholesky || options_.hermitian;
  if (!pairs_) pairs_ = std::make_unique<const SymmetricPairs>(*options_.compared, hermitian, precision_.is_complex);
  if (!typed([&]<class T>(T) { return are_symmetric(*pairs_, A_, (const T*)backup_.data(), largest); }))
    throw NotSymmetric();
}

off Factor::refactor(const void* values, const off* source, bool checked) {
  const UseLock::Exclusive own = use_.exclusive();
  const Stopwatch watch;
  const off nnz = A_.nnz();
  backup_.resize(values_.size());
  const auto [largest, not_finite] = typed([&]<class T>(T) {
    T* const canonical = (T*)backup_.data();
    const double largest = copy_values((const T*)values, source, canonical, nnz);
    off k = std::isfinite(largest) ? nnz : 0;
    while (k < nnz && all_finite(canonical + k, 1)) k++;
    return std::pair(largest, k);
  });
  if (not_finite < nnz) return not_finite;
  if (options_.compared && !checked) require_symmetric(largest);
  factor_backup(largest);
  stats_.n_refactor++;
  stats_.refactor_seconds = watch.seconds();
  return -1;
}

// Records that the current values have no factor with this analysis; `replace`: the existing factors are unusable too.
void Factor::lose(std::shared_ptr<const Symbolic> symbolic, bool replace) {
  lost_ = true;
  if (replace || symbolic_ != symbolic) column_.reset(), front_.reset();
  take(std::move(symbolic));
}

// Whether the pivots are still those of the lost factor.
bool Factor::has_pivots() const { return column_ && column_->factored() && column_->origin().choice == origin_.choice; }

// Factors the current values in the same way as before. If memory is too short, or the call is interrupted, the next
// use of the factor does it.
void Factor::restore() {
  try {
    factor(!(origin_.refactored && has_pivots()));
    go_on();
    lost_ = false;
  } catch (const std::bad_alloc&) {
    column_.reset(), front_.reset();
  }
}

// Requires exclusive use of the factor.
void Factor::recover() {
  if (lost_) restore();
  if (lost_) throw std::bad_alloc();
}

// Restores the factor if necessary; callers of const functions do not see this.
UseLock::Shared Factor::held() const {
  for (;;) {
    {
      UseLock::Shared shared = use_.together();
      if (!lost_) return shared;
    }
    const UseLock::Exclusive own = use_.exclusive();
    const_cast<Factor*>(this)->recover();
  }
}

FactorStats Factor::stats() const {
  const UseLock::Shared shared = held();
  std::lock_guard lock(use_.counts);
  return stats_;
}

FactorSummary Factor::summary() const {
  const UseLock::Shared shared = held();
  FactorSummary all;
  all.info = info_;
  all.symbolic = symbolic_;
  all.method = front_ ? Method::front : Method::column;
  all.hermitian = options_.hermitian;
  all.nnz = numeric().nnz_lower() + (symbolic_->one_triangle() ? 0 : numeric().nnz_upper());
  all.bytes = numeric().bytes();
  if (wide_.column && wide_.column != column_) all.bytes += wide_.column->bytes();
  if (triangles_) all.bytes += triangles_->bytes();
  if (pairs_) all.bytes += pairs_->bytes();
  if (mirror_) all.bytes += mirror_->bytes();
  all.error_bound = error_bound();
  return all;
}

Values Factor::values() const {
  const UseLock::Shared shared = held();
  return typed([&]<class T>(T) -> Values { return std::vector<T>(values_as<T>(), values_as<T>() + A_.nnz()); });
}

std::vector<idx> Factor::pivot_rows() const {
  const UseLock::Shared shared = held();
  return numeric().row_perm();
}

std::vector<idx> Factor::pivot_columns() const {
  const UseLock::Shared shared = held();
  return numeric().col_perm();
}

// ---- LDL^T: delayed columns, and the fallback to LU for callers that requested LU

namespace {

constexpr int most_delays = 8;                             // rounds of a factorization
constexpr double most_delayed = 0.01, least_delayed = 16;  // columns of a round: a fraction of all, or this number

}  // namespace

// Whether the values have the symmetry that LDL^T needs, which may differ from that of the previous values.
bool Factor::is_compatible_with_ldlt() {
  if (!options_.symmetric) return true;
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
  auto reanalyzed = require_full_rank(analyzed(AnalyzeOptions(symbolic_->costs)));
  stats_.n_reanalyzed++;
  ldlt_.reset(), front_.reset(), column_.reset(), mirror_.reset();
  take(std::move(reanalyzed));
}

// LU by fronts may succeed where LDL^T does not, at a fraction of the cost of column LU. The current factor stays if
// this throws.
void Factor::choose_pivots_again() {
  if (!(symbolic_->ldlt && options_.symmetric)) return use_partial_pivoting();
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

// ---- updates and downdates of a Cholesky factor
// Rounding errors of successive updates accumulate, so solves with an
// updated factor are measured, and a new factorization replaces a factor that is no longer accurate.

namespace {

template <class T> struct EntryChange {
  off place;  // in canonical order
  T after;
};

// Entries of A + sign C C^H that differ from A, each once; empty if A's pattern lacks one of them. C has as many
// columns as its pattern's n, with rows of A, each at most once per column. Cost: a search for every pair of entries of
// a column.
template <class T> std::optional<std::vector<EntryChange<T>>> outer_products(PatternView A, const T* values,
                                                                             const Pattern& C, const T* of_C,
                                                                             int sign) {
  std::vector<EntryChange<T>> changes;  // `after` holds the summand
  Pace pace;
  for (idx r = 0; r < C.n; r++)
    for (off q = C.ptr[r]; q < C.ptr[r + 1]; q++) {
      pace.go_on(1 + C.ptr[r + 1] - C.ptr[r]);
      const idx column = C.ind[q];
      const T factor = real_t<T>(sign) * conj_if(of_C[q], true);
      const idx *begin = A.ind + A.ptr[column], *end = A.ind + A.ptr[column + 1];
      for (off p = C.ptr[r]; p < C.ptr[r + 1]; p++) {
        const idx* found = std::lower_bound(begin, end, C.ind[p]);
        if (found == end || *found != C.ind[p]) return std::nullopt;
        changes.push_back({found - A.ind, of_C[p] * factor});
      }
    }
  std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.place < b.place; });
  std::size_t count = 0;
  for (const EntryChange<T>& change : changes) {
    if (count > 0 && changes[count - 1].place == change.place) changes[count - 1].after += change.after;
    else changes[count++] = {change.place, values[change.place] + change.after};
  }
  changes.resize(count);
  return changes;
}

}  // namespace

bool Factor::update(const AnyMatrix& C, int sign) {
  const UseLock::Exclusive own = use_.exclusive();
  recover();
  const Stopwatch watch;
  std::vector<off> places;
  Values changed;
  double largest = largest_;
  const bool has_places = typed([&]<class T>(T) {
    const T* const of_C = (const T*)data_of(C.values);
    const auto changes = outer_products(A_, values_as<T>(), C.pattern, of_C, sign);
    if (!changes) return false;
    std::vector<T> after;
    for (const EntryChange<T>& change : *changes) {
      largest = max_or_nan(largest, modulus(change.after));
      places.push_back(change.place), after.push_back(change.after);
    }
    changed = std::move(after);
    return true;
  });
  if (!has_places) return false;
  if (!std::isfinite(largest)) throw std::overflow_error("an entry of the changed matrix is out of range");
  backup_.reserve(values_.size());  // nothing below may run out of memory while the factor is half changed
  const auto apply = [&](RawVector<std::byte>& values) {
    typed([&]<class T>(T) {
      for (std::size_t k = 0; k < places.size(); k++)
        ((T*)values.data())[places[k]] = std::get<std::vector<T>>(changed)[k];
    });
  };
  const auto changes_columns = [&] {
    try {
      return front_->update_pays(C.pattern) && front_->update(C, sign);
    } catch (const Interrupted&) {
      lose(symbolic_, false);
      throw;
    }
  };
  if (changes_columns()) {
    apply(values_);
    largest_ = largest, updated_ = true;
    norms_[0] = norms_[1] = -1;
  } else {
    backup_.resize(values_.size());
    std::memcpy(backup_.data(), values_.data(), values_.size());
    apply(backup_);
    factor_backup(largest);
  }
  stats_.n_updated++;
  stats_.refactor_seconds = watch.seconds();
  return true;
}

// Factors the current values while the old factor is kept. Returns whether the new factor replaced it.
bool Factor::refactor_updated() {
  auto front = make_front_factor(dtype_, symbolic_, A_, options_.hermitian);
  const FactorInfo info = front->factor(values_.data(), {});
  if (info.status != FactorInfo::ok) return false;
  front_ = std::move(front), info_ = info;
  updated_ = false;
  return true;
}

// ---- determinant, condition number and certified inertia
// M = L D L^H, as computed, has the inertia of D (Sylvester). A = (I - G) M with G = (M - A) M^-1, so while ||G|| < 1
// no matrix between M and A is singular, and A has the inertia of M regardless of rounding, growth or perturbed pivots.
// G v is the residual of a solve with the factors for the right-hand side v. If v is normally distributed, the mean of
// ||G v||^2 is ||G||_F^2, and the mean over a few v is practically never smaller by orders of magnitude: for eight
// vectors, by a factor of 1e-4 with probability less than 1e-14 (the worst case is G of rank one; Gratton &
// Titley-Peloquin, Improved bounds for small-sample estimation, SIAM J. Matrix Anal. Appl. 39 (2018)).

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
