#include "numeric/factor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/analyze.hpp"
#include "base/stopwatch.hpp"
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

// Scaling moves rounding errors of the scaled matrix back by at most this factor.
double amplification(const Symbolic& s) {
  if (s.row_scale.empty() || s.n == 0) return 1;
  return 1 / (*std::min_element(s.row_scale.begin(), s.row_scale.end()) *
              *std::min_element(s.col_scale.begin(), s.col_scale.end()));
}

}  // namespace

template <class T> Factor<T>::Factor(std::shared_ptr<const Symbolic> symbolic, PatternView A, const T* values,
                                     const FactorOptions& options)
    : symbolic_(std::move(symbolic)), A_(A), values_(values, values + A.nnz()), options_(options) {
  if (symbolic_->structural_rank < symbolic_->n) throw SingularError(-1);
  const Stopwatch watch;
  largest_ = largest_part(values_.data(), (off)values_.size());
  factor(true);
  stats_.factor_seconds = watch.seconds();
}

template <class T> double Factor<T>::norm(Trans trans) {
  std::lock_guard lock(stats_mutex_);
  double& norm = norms_[trans != Trans::none];
  if (norm < 0) norm = norm_inf(A_, values_.data(), trans);
  return norm;
}

template <class T> void Factor<T>::factor(bool fresh) {
  const auto symbolic_before = symbolic_;
  if (symbolic_->method == Method::front) {
    factor_front(fresh);
  } else if (fresh) {
    factor_column(options_.pivot_threshold);
  } else {
    info_ = column_->refactor(values_.data(), nullptr);
    if (info_.status != FactorInfo::ok) {
      stats_.n_repivoted++;
      fresh = true;
      factor_column(options_.pivot_threshold);
    }
  }
  decide_checks(fresh || symbolic_ != symbolic_before);
}

// The computed factors are those of A + E with |E| <= c eps Dr^-1 |L| |U| Dc^-1 (Higham, Accuracy and Stability of
// Numerical Algorithms, theorem 9.3), so this bounds ||E|| / ||A|| but for a modest c.
template <class T> double Factor<T>::error_bound() const {
  if (symbolic_->cholesky || !(largest_ > 0)) return eps<T>;
  const double growth = std::max(1.0, info_.max_multiplier) * info_.pivot_growth * info_.max_entry;
  return eps<T> * growth * amplification(*symbolic_) / largest_;
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

template <class T> void Factor<T>::factor_column(double threshold) {
  if (!column_) column_ = std::make_unique<ColumnLU<T>>(*symbolic_, A_);
  typename ColumnLU<T>::Options options;
  options.pivot_threshold = threshold;
  info_ = column_->factor(values_.data(), options);
  if (info_.status != FactorInfo::ok) throw SingularError(info_.column);
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
  if (options_.pivoting == Pivoting::fixed || certified()) return;
  if (fresh) return use_partial_pivoting();
  AnalyzeOptions again;  // the matching was made for older values
  again.method = MethodChoice::front;
  auto renewed = std::make_shared<Symbolic>(analyze(A_, values_.data(), again));
  if (renewed->structural_rank < renewed->n) throw SingularError(-1);
  stats_.n_reanalyzed++;
  front_.reset();
  symbolic_ = std::move(renewed);
  factor_front(true);
}

// Whether the fronts can be left to the checks of solve(). Perturbed pivots and large multipliers call for a solve
// with a known answer now; a tiny pivot may mean that A is singular, which only pivoting over whole columns can tell.
template <class T> bool Factor<T>::certified() {
  if (info_.status != FactorInfo::ok || info_.n_tiny > 0) return false;
  if (info_.n_perturbed == 0 && error_bound() < std::sqrt(eps<T>)) return true;
  norms_[0] = norms_[1] = -1;
  std::vector<T> ones(A_.n, T(1)), b(A_.n), x(A_.n);
  multiply(A_, values_.data(), Trans::none, ones.data(), b.data(), 1);
  return checked_solve(Trans::none, 1, b.data(), x.data()) <= accept_below<T>;
}

template <class T> void Factor<T>::use_partial_pivoting() {
  AnalyzeOptions by_columns;
  by_columns.method = MethodChoice::column;
  auto renewed = std::make_shared<Symbolic>(analyze(A_, values_.data(), by_columns));
  if (renewed->structural_rank < renewed->n) throw SingularError(-1);
  stats_.n_repivoted++;
  front_.reset();
  column_.reset();
  symbolic_ = std::move(renewed);
  factor_column(std::max(options_.pivot_threshold, 0.5));
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
    symbolic_ = std::move(symbolic);
  }
  factor(true);
}

template <class T> void Factor<T>::engine_solve(Trans trans, idx nrhs, const T* b, T* x) const {
  if (front_) front_->solve(trans, nrhs, b, A_.n, x, A_.n);
  else column_->solve(trans, nrhs, b, A_.n, x, A_.n);
}

// Solves, measures the normwise backward error ||b - op(A) x|| / (||op(A)|| ||x|| + ||b||), the largest over the
// columns, and refines while that helps. Returns the backward error of what is left in x.
template <class T> double Factor<T>::checked_solve(Trans trans, idx nrhs, const T* b, T* x) {
  const size_t size = (size_t)A_.n * nrhs;
  const double norm_of_A = norm(trans);
  engine_solve(trans, nrhs, b, x);
  std::vector<T> r(size), step, better;
  std::vector<ResidualNorms> norms(nrhs);
  auto measure = [&](const T* y) {
    residual(A_, values_.data(), trans, y, b, r.data(), nrhs, norms.data());
    double worst = 0;
    for (const ResidualNorms& column : norms) {
      const double e = backward_error(column, norm_of_A);
      if (!(e <= worst)) worst = e;
    }
    return worst;
  };
  double error = measure(x);
  if (error <= refine_above<T>) verified_[trans != Trans::none] = true;
  off steps = 0;
  for (bool helps = true; helps && !(error <= refine_above<T>)&&steps < 3;) {
    step.resize(size);
    engine_solve(trans, nrhs, r.data(), step.data());
    better.assign(x, x + size);
    for (size_t i = 0; i < size; i++) better[i] += step[i];
    const double next = measure(better.data());
    if (!(next < error)) break;
    std::copy(better.begin(), better.end(), x);
    helps = next < 0.5 * error;
    error = next;
    steps++;
  }
  std::lock_guard lock(stats_mutex_);
  stats_.n_refinement += steps;
  stats_.backward_error = error;
  return error;
}

template <class T> void Factor<T>::solve(Trans trans, idx nrhs, const T* b, T* x) {
  const Stopwatch watch;
  std::shared_lock shared = together();
  if (!must_measure(trans)) {
    engine_solve(trans, nrhs, b, x);
  } else {
    double error = checked_solve(trans, nrhs, b, x);
    if (!(error <= accept_below<T>)&&front_ && !symbolic_->cholesky && options_.pivoting != Pivoting::fixed) {
      shared.unlock();
      const std::unique_lock own = exclusive();
      if (front_) {
        use_partial_pivoting();
        decide_checks(true);
      }
      error = checked_solve(trans, nrhs, b, x);
    }
  }
  std::lock_guard lock(stats_mutex_);
  stats_.solve_seconds = watch.seconds();
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
