#include "numeric/factor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/analyze.hpp"
#include "base/stopwatch.hpp"
#include "matrix/modulus.hpp"
#include "matrix/products.hpp"
#include "matrix/values.hpp"
#include "numeric/condition.hpp"

namespace gs {
namespace {

template <class T> constexpr double eps = std::numeric_limits<real_t<T>>::epsilon();
// Solves above `refine_above` are refined; one that stays above `accept_below` is not accepted from fronts.
template <class T> constexpr double refine_above = 8 * eps<T>;
template <class T> constexpr double accept_below = 100 * eps<T>;
// Solves whose backward error is bounded by this are not measured.
template <class T> constexpr double trusted_below = 16 * eps<T>;
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

// Of a system with a known answer: 1, unless the entries of A are near an end of the range.
template <class T> T moderate_entry(double largest_of_A) {
  constexpr int extreme = std::numeric_limits<real_t<T>>::max_exponent / 2;
  const int exponent = largest_of_A > 0 ? std::ilogb(largest_of_A) : 0;
  return T((real_t<T>)std::ldexp(1.0, std::abs(exponent) > extreme ? -exponent / 2 : 0));
}

// Of v, not all zero, times powers of two: the largest binary exponent.
template <class T> int largest_exponent(const T* v, idx n, const std::vector<double>& scale) {
  int largest = std::numeric_limits<int>::min();
  for (idx i = 0; i < n; i++)
    if (v[i] != T(0)) largest = std::max(largest, 1 + std::ilogb(abs1(v[i] * real_t<T>(0.5))) + (scale.empty() ? 0 : std::ilogb(scale[i])));
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

template <class T> Factor<T>::Factor(std::shared_ptr<const Symbolic> symbolic, PatternView A, const T* values,
                                     const FactorOptions& options)
    : A_(A), values_(values, values + A.nnz()), options_(options) {
  take(with_scales_of<T>(std::move(symbolic)));
  if (symbolic_->structural_rank < symbolic_->n) throw SingularError(-1);
  const Stopwatch watch;
  largest_ = largest_part(values_.data(), (off)values_.size());
  factor(true);
  stats_.factor_seconds = watch.seconds();
}

template <class T> void Factor<T>::take(std::shared_ptr<const Symbolic> symbolic) {
  symbolic_ = std::move(symbolic);
  const std::vector<double>* scales[] = {&symbolic_->row_scale, &symbolic_->col_scale};
  for (const int k : {0, 1}) {
    least_scale_[k] = largest_scale_[k] = 1;
    if (scales[k]->empty()) continue;
    const auto [least, largest] = std::minmax_element(scales[k]->begin(), scales[k]->end());
    least_scale_[k] = *least, largest_scale_[k] = *largest;
  }
}

template <class T> double Factor<T>::norm(Trans trans) {
  std::lock_guard lock(stats_mutex_);
  double& norm = norms_[trans != Trans::none];
  if (norm < 0) norm = norm_inf(A_, values_.data(), trans);
  return norm;
}

template <class T> void Factor<T>::factor(bool fresh) {
  const auto symbolic_before = symbolic_;
  n_resorts_ = 0;
  if (symbolic_->method == Method::front) {
    factor_front(fresh);
  } else {
    if (!fresh) {
      info_ = column_->refactor(values_.data(), nullptr);
      if (!certified()) fresh = true, stats_.n_repivoted++;
    }
    // new values may be out of the range of old scales: only scales of their own can tell whether they are singular
    if (fresh && !(factor_column(options_.pivot_threshold) && certified())) use_partial_pivoting();
  }
  decide_checks(fresh || symbolic_ != symbolic_before);
}

// The computed factors are those of A + E with |E| <= c eps Dr^-1 |L| |U| Dc^-1 (Higham, Accuracy and Stability of
// Numerical Algorithms, theorem 9.3), so this bounds ||E|| / ||A|| but for a modest c: scaling moves rounding errors of
// the scaled matrix back by at most the reciprocals of the least scales.
template <class T> double Factor<T>::error_bound() const {
  if (symbolic_->cholesky || !(largest_ > 0)) return eps<T>;
  const double growth = std::max(1.0, info_.max_multiplier) * info_.pivot_growth * info_.max_entry;
  return eps<T> * growth / (least_scale_[0] * least_scale_[1]) / largest_;
}

// Fronts that had to perturb a pivot, and any factor with much growth, are accurate to fewer digits than the precision
// has in the matrix as it was scaled. Of that a norm may show nothing, where rows or unknowns differ much in size.
template <class T> bool Factor<T>::doubtful() const {
  if (symbolic_->cholesky) return false;
  const double growth = std::max(1.0, info_.max_multiplier) * info_.pivot_growth * std::max(1.0, info_.max_entry);
  return info_.n_perturbed > 0 || !(eps<T> * growth < std::sqrt(eps<T>));
}

// The bound leaves out how rounding errors add up in long sums, so a first solve in either direction is measured even
// where the bound is good; later factorizations on the same pivots with a good bound then need no measuring.
template <class T> void Factor<T>::decide_checks(bool fresh) {
  trusted_ = info_.n_perturbed == 0 && error_bound() <= trusted_below<T>;
  norms_[0] = norms_[1] = -1;
  if (fresh) verified_[0] = verified_[1] = false;
}

template <class T> bool Factor<T>::must_measure(Trans trans) const {
  if (options_.refine != Refine::automatic) return options_.refine == Refine::always;
  return !symbolic_->cholesky && !(trusted_ && verified_[trans != Trans::none]);
}

// Whether that succeeded.
template <class T> bool Factor<T>::factor_column(double threshold) {
  if (!column_) column_ = std::make_unique<ColumnLU<T>>(*symbolic_, A_);
  typename ColumnLU<T>::Options options;
  options.pivot_threshold = threshold;
  info_ = column_->factor(values_.data(), options);
  return info_.status == FactorInfo::ok;
}

template <class T> void Factor<T>::factor_front(bool fresh) {
  if (!front_) front_ = std::make_unique<FrontFactor<T>>(symbolic_, A_);
  // the scaled matrix has entries of at most about 1; a pivot below n eps may be a zero that rounding filled
  const PivotRule rule{std::sqrt(eps<T>), A_.n * eps<T>};
  info_ = front_->factor(values_.data(), nullptr, rule);
  if (symbolic_->cholesky) {
    if (info_.status != FactorInfo::ok) throw NotPositiveDefinite(info_.column, info_.min_pivot);
    return;
  }
  if (certified()) return;
  if (fresh) return use_partial_pivoting();
  AnalyzeOptions again;  // the matching was made for older values
  again.method = MethodChoice::front;
  auto renewed = std::make_shared<Symbolic>(analyze(A_, values_.data(), again));
  if (renewed->structural_rank < renewed->n) throw SingularError(-1);
  stats_.n_reanalyzed++;
  front_.reset();
  take(std::move(renewed));
  factor_front(true);
}

// Whether the factor can be left to the checks of solve(). Perturbed pivots and much growth call for a solve with a
// known answer now; a tiny pivot of a front may mean that A is singular, which only pivoting over whole columns can
// tell.
template <class T> bool Factor<T>::certified() {
  if (!front_ && info_.status != FactorInfo::ok) return false;
  if (options_.pivoting == Pivoting::fixed) return true;
  if (info_.status != FactorInfo::ok || (front_ && info_.n_tiny > 0)) return false;
  if (!doubtful() && (!front_ || error_bound() < std::sqrt(eps<T>))) return true;
  norms_[0] = norms_[1] = -1;
  std::vector<T> known(A_.n, moderate_entry<T>(largest_)), b(A_.n), x(A_.n);
  multiply(A_, values_.data(), Trans::none, known.data(), b.data(), 1);
  return checked_solve(Trans::none, 1, b.data(), x.data());
}

// For column LU, of the values at hand; the order of columns stays where it is the caller's.
template <class T> Symbolic Factor<T>::analysis_by_columns(bool matching) const {
  AnalyzeOptions by_columns;
  by_columns.method = MethodChoice::column;
  by_columns.matching = matching;
  if (column_ && symbolic_->ordering == "natural") by_columns.ordering = Ordering::natural;
  if (column_ && symbolic_->ordering == "user")
    by_columns.ordering = Ordering::user, by_columns.user_perm = symbolic_->col_perm.data();
  Symbolic renewed = analyze(A_, values_.data(), by_columns);
  if (!renewed.row_scale.empty()) return renewed;
  // one number for all, away from the ends of the range: sums of two parts overflow at one, reciprocals at the other
  constexpr int top = std::numeric_limits<real_t<T>>::max_exponent - 16,
                bottom = std::numeric_limits<real_t<T>>::min_exponent + 32;
  const int exponent = largest_ > 0 ? std::ilogb(largest_) : 0;
  const int shift = exponent > top ? top - exponent : exponent < bottom ? -exponent : 0;
  if (shift != 0) {
    renewed.row_scale.assign(A_.n, std::ldexp(1.0, shift / 2));
    renewed.col_scale.assign(A_.n, std::ldexp(1.0, shift - shift / 2));
  }
  return renewed;
}

// Column LU by partial pivoting on an analysis of the values at hand, until a solve with a known answer is accurate:
// first of the matrix as matching scales it, then, as SuperLU does it, of the matrix as it is, where scales are so
// large that numbers overflow. What is held stays where that throws, and where pivots are out of range.
template <class T> void Factor<T>::use_partial_pivoting() {
  const bool unscaled = column_ && symbolic_->ordering == "natural";
  for (bool done = false; !done && n_resorts_ < most_resorts;) {
    const bool last = unscaled || n_resorts_ + 1 == most_resorts;
    n_resorts_ = last ? most_resorts : n_resorts_ + 1;
    const auto renewed = std::make_shared<const Symbolic>(analysis_by_columns(!last));
    if (renewed->structural_rank < renewed->n) throw SingularError(-1);
    auto column = std::make_unique<ColumnLU<T>>(*renewed, A_);
    typename ColumnLU<T>::Options options;
    options.pivot_threshold = last ? 1 : std::max(options_.pivot_threshold, 0.5);
    const FactorInfo info = column->factor(values_.data(), options);
    const bool holds = info_.status == FactorInfo::ok && (front_ || column_->factored());
    if (last && (info.status == FactorInfo::singular || (info.status != FactorInfo::ok && !holds)))
      throw SingularError(info.column);
    if (info.status != FactorInfo::ok) continue;
    stats_.n_repivoted++;
    info_ = info;
    front_.reset();
    column_ = std::move(column);
    take(renewed);
    done = certified();
  }
}

template <class T> std::shared_lock<std::shared_mutex> Factor<T>::together() const {
  std::lock_guard turn(turn_);
  return std::shared_lock(mutex_);
}

template <class T> std::unique_lock<std::shared_mutex> Factor<T>::exclusive() const {
  std::lock_guard turn(turn_);
  return std::unique_lock(mutex_);
}

template <class T> off Factor<T>::refactor(const T* values, const off* source) {
  const std::unique_lock own = exclusive();
  const Stopwatch watch;
  const off nnz = (off)values_.size();
  spare_.resize(nnz);
  if (source)
    for (off k = 0; k < nnz; k++) spare_[k] = values[source[k]];
  else std::copy(values, values + nnz, spare_.begin());
  const double largest = largest_part(spare_.data(), nnz);
  if (!std::isfinite(largest))
    return std::find_if(spare_.begin(), spare_.end(), [](const T& v) { return !all_finite(&v, 1); }) - spare_.begin();
  values_.swap(spare_);
  const auto symbolic_before = symbolic_;
  const double largest_before = largest_;
  largest_ = largest;
  try {
    factor(false);
  } catch (...) {
    values_.swap(spare_);
    largest_ = largest_before;
    restore(symbolic_before);
    throw;
  }
  stats_.n_refactor++;
  stats_.refactor_seconds = watch.seconds();
  return -1;
}

template <class T> void Factor<T>::restore(std::shared_ptr<const Symbolic> symbolic) {
  if (symbolic_ != symbolic) {
    column_.reset();
    front_.reset();
    take(std::move(symbolic));
  }
  factor(true);
}

template <class T> void Factor<T>::engine_solve(Trans trans, idx nrhs, const T* b, T* x) const {
  if (front_) front_->solve(trans, nrhs, b, A_.n, x, A_.n);
  else if (!column_->factored()) throw SingularError(-1);  // as the attempt to choose pivots anew found
  else column_->solve(trans, nrhs, b, A_.n, x, A_.n);
}

// Whether no number that matters left the range of the type on the way from b to x: x shows overflow, and b and x are
// so large that what underflows beside them is rounding error, scaled or not.
template <class T> bool Factor<T>::in_range(Trans trans, const T* b, const T* x) const {
  const double size_of_b = largest_part(b, A_.n), size_of_x = largest_part(x, A_.n);
  if (!std::isfinite(size_of_x)) return false;
  const int in = trans == Trans::none ? 0 : 1;
  const double least = std::numeric_limits<real_t<T>>::min() / eps<T>;
  return size_of_b == 0 || (size_of_b * std::min(1.0, least_scale_[in]) >= least &&
                            size_of_x / std::max(1.0, largest_scale_[1 - in]) >= least);
}

// Solves, and where that leaves the range of the type again for multiples of b: that are about 1 when they are scaled,
// and if they overflow for ever smaller ones.
template <class T> void Factor<T>::solve_in_range(Trans trans, idx nrhs, const T* b, T* x) const {
  constexpr int range = std::numeric_limits<real_t<T>>::max_exponent;
  engine_solve(trans, nrhs, b, x);
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
      if (finite) scale_by_power(solution.data(), A_.n, -shift, x);
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
  std::lock_guard lock(stats_mutex_);
  stats_.n_refinement += steps;
  stats_.backward_error = error.normwise;
  return moved <= 0.1 && error.normwise <= accept_below<T> && error.rowwise <= rowwise_below<T>;
}

// Nothing is left to be tried after partial pivoting, and nothing helps where b is not finite.
template <class T> bool Factor<T>::can_repivot(idx nrhs, const T* b) const {
  return n_resorts_ < most_resorts && !symbolic_->cholesky && options_.pivoting != Pivoting::fixed &&
         all_finite(b, (off)A_.n * nrhs);
}

template <class T> bool Factor<T>::solve(Trans trans, idx nrhs, const T* b, T* x) {
  const Stopwatch watch;
  std::shared_lock shared = together();
  bool good = !must_measure(trans);
  if (good) {
    engine_solve(trans, nrhs, b, x);
    for (idx k = 0; good && k < nrhs; k++) good = in_range(trans, b + (off)k * A_.n, x + (off)k * A_.n);
    if (!good && options_.refine == Refine::never) solve_in_range(trans, nrhs, b, x);
  }
  if (!good && options_.refine != Refine::never && !checked_solve(trans, nrhs, b, x) && can_repivot(nrhs, b)) {
    shared.unlock();
    const std::unique_lock own = exclusive();
    while (!checked_solve(trans, nrhs, b, x) && can_repivot(nrhs, b)) {
      use_partial_pivoting();
      decide_checks(true);
    }
  }
  std::lock_guard lock(stats_mutex_);
  stats_.solve_seconds = watch.seconds();
  const off size = (off)A_.n * nrhs;
  return good || all_finite(x, size) || !all_finite(b, size);
}

template <class T> double Factor<T>::reciprocal_condition() const {
  if (A_.n == 0) return std::numeric_limits<double>::infinity();
  const std::shared_lock shared = together();
  const double inverse_norm =
      estimate_inverse_norm<T>(A_.n, [&](Trans trans, const T* b, T* x) { engine_solve(trans, 1, b, x); });
  const double rcond = 1 / (inverse_norm * norm_inf(A_, values_.data(), Trans::transpose));
  return std::isfinite(rcond) ? rcond : 0.0;
}

template <class T> FactorStats Factor<T>::stats() const {
  const std::shared_lock shared = together();
  std::lock_guard lock(stats_mutex_);
  return stats_;
}

template <class T> FactorSummary Factor<T>::summary() const {
  const std::shared_lock shared = together();
  FactorSummary all;
  all.info = info_;
  all.symbolic = symbolic_;
  all.method = front_ ? Method::front : Method::column;
  if (!front_) all.nnz = column_->nnz_lower() + column_->nnz_upper();
  else all.nnz = front_->nnz_lower() + (symbolic_->cholesky ? 0 : front_->nnz_upper());
  all.bytes = front_ ? front_->bytes() : column_->bytes();
  all.error_bound = error_bound();
  return all;
}

template <class T> std::vector<T> Factor<T>::values() const {
  const std::shared_lock shared = together();
  return values_;
}

template <class T> std::vector<idx> Factor<T>::row_perm() const {
  const std::shared_lock shared = together();
  return front_ ? front_->row_perm() : column_->row_perm();
}

template <class T> std::vector<idx> Factor<T>::col_perm() const {
  const std::shared_lock shared = together();
  return front_ ? front_->col_perm() : column_->col_perm();
}

template <class T> std::vector<T> Factor<T>::diagonal() const {
  const std::shared_lock shared = together();
  return front_ ? front_->diagonal() : column_->upper_diagonal();
}

template <class T> Matrix<T> Factor<T>::lower() const {
  const std::shared_lock shared = together();
  return front_ ? front_->lower() : column_->lower();
}

template <class T> Matrix<T> Factor<T>::upper() const {
  const std::shared_lock shared = together();
  return front_ ? front_->upper() : column_->upper();
}

template class Factor<float>;
template class Factor<double>;
template class Factor<std::complex<float>>;
template class Factor<std::complex<double>>;

}  // namespace gs
