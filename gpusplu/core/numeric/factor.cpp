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
  std::lock_guard lock(use_.counts);
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
    if (fresh) {
      factor_column(options_.pivot_threshold);
      if (!certified()) use_partial_pivoting();
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
  if (certified()) return;
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

// Whether the factor can be left to the checks of solve(). Perturbed pivots and much growth call for a solve with a
// known answer now; a tiny pivot of a front may mean that A is singular, which only pivoting over whole columns can
// tell.
template <class T> bool Factor<T>::certified() {
  if (!front_ && info_.status != FactorInfo::ok) return false;
  if (options_.pivoting == Pivoting::fixed) return true;
  if (info_.status != FactorInfo::ok || (front_ && info_.n_tiny > 0)) return false;
  if (!doubtful() && (!front_ || error_bound() < std::sqrt(eps<T>))) return true;
  norms_[0] = norms_[1] = -1;
  std::vector<T> ones(A_.n, T(1)), b(A_.n), x(A_.n);
  multiply(A_, values_.data(), Trans::none, ones.data(), b.data(), 1);
  return checked_solve(Trans::none, 1, b.data(), x.data());
}

// Column LU by partial pivoting on an analysis of the values at hand, until a solve with a known answer is accurate:
// first of the matrix as matching scales it, then, as SuperLU does it, of the matrix as it is, where scales are so
// large that numbers overflow. The order of columns stays where it is the caller's. What is held stays where that
// throws.
template <class T> void Factor<T>::use_partial_pivoting() {
  const bool own_order = column_ && (symbolic_->ordering == "natural" || symbolic_->ordering == "user");
  for (bool done = false; !done && n_resorts_ < most_resorts;) {
    const bool last = own_order || n_resorts_ + 1 == most_resorts;
    AnalyzeOptions by_columns;
    by_columns.method = MethodChoice::column;
    by_columns.matching = !last;
    auto renewed = own_order ? symbolic_ : std::make_shared<const Symbolic>(analyze(A_, values_.data(), by_columns));
    if (renewed->structural_rank < renewed->n) throw SingularError(-1);
    auto column = std::make_unique<ColumnLU<T>>(*renewed, A_);
    typename ColumnLU<T>::Options options;
    options.pivot_threshold = last ? 1 : std::max(options_.pivot_threshold, 0.5);
    const FactorInfo info = column->factor(values_.data(), options);
    n_resorts_ = last ? most_resorts : n_resorts_ + 1;  // not before: a step that lacks memory is taken again
    if (info.status != FactorInfo::ok && last) throw SingularError(info.column);
    if (info.status != FactorInfo::ok) continue;
    stats_.n_repivoted++;
    info_ = info;
    front_.reset();
    column_ = std::move(column);
    symbolic_ = std::move(renewed);
    done = certified();
  }
}

template <class T> off Factor<T>::refactor(const T* values, const off* source) {
  const UseLock::Exclusive own = use_.exclusive();
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
  const auto go_back = [&](bool anew) {
    values_.swap(spare_);
    largest_ = largest_before;
    restore(symbolic_before, anew);
  };
  try {
    factor(lost_);
    lost_ = false;
  } catch (const std::bad_alloc&) {
    go_back(true);
    throw;
  } catch (...) {
    go_back(false);
    throw;
  }
  stats_.n_refactor++;
  stats_.refactor_seconds = watch.seconds();
  return -1;
}

// Factors the values held, `anew` with nothing of what there is. Where memory is too short even for that, the next who
// uses the factor does it.
template <class T> void Factor<T>::restore(std::shared_ptr<const Symbolic> symbolic, bool anew) {
  lost_ = true;
  if (anew || symbolic_ != symbolic) column_.reset(), front_.reset();
  symbolic_ = std::move(symbolic);
  try {
    factor(true);
    lost_ = false;
  } catch (const std::bad_alloc&) {
    column_.reset(), front_.reset();
  }
}

// What restore() left to be done is nothing that the caller of a const function sees.
template <class T> void Factor<T>::recover() {
  const UseLock::Exclusive own = use_.exclusive();
  if (lost_) restore(symbolic_, true);
  if (lost_) throw std::bad_alloc();
}

template <class T> std::shared_lock<std::shared_mutex> Factor<T>::held() const {
  for (;;) {
    std::shared_lock shared = use_.together();
    if (!lost_) return shared;
    shared.unlock();
    const_cast<Factor*>(this)->recover();
  }
}

template <class T> void Factor<T>::engine_solve(Trans trans, idx nrhs, const T* b, T* x) const {
  if (front_) front_->solve(trans, nrhs, b, A_.n, x, A_.n);
  else if (!column_->factored()) throw SingularError(-1);  // as the attempt to choose pivots anew found
  else column_->solve(trans, nrhs, b, A_.n, x, A_.n);
}

// Solves, measures the normwise backward error ||b - op(A) x|| / (||op(A)|| ||x|| + ||b||), the largest over the
// columns, of doubtful factors also the error of single rows, and refines while that helps. Whether what is left in x
// is accurate.
template <class T> bool Factor<T>::checked_solve(Trans trans, idx nrhs, const T* b, T* x) {
  const size_t size = (size_t)A_.n * nrhs;
  const double norm_of_A = norm(trans);
  const bool by_rows = doubtful();
  const std::vector<double>& scale = trans == Trans::none ? symbolic_->row_scale : symbolic_->col_scale;
  engine_solve(trans, nrhs, b, x);
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
    for (const ResidualNorms& column : norms)
      error.normwise = max_or_nan(error.normwise, backward_error(column, norm_of_A));
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
    engine_solve(trans, nrhs, r.data(), step.data());
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

template <class T> void Factor<T>::solve(Trans trans, idx nrhs, const T* b, T* x) {
  const Stopwatch watch;
  std::shared_lock shared = held();
  if (!must_measure(trans)) {
    engine_solve(trans, nrhs, b, x);
  } else if (!checked_solve(trans, nrhs, b, x) && can_repivot(nrhs, b)) {
    shared.unlock();
    const UseLock::Exclusive own = use_.exclusive();
    if (lost_) throw std::bad_alloc();
    while (!checked_solve(trans, nrhs, b, x) && can_repivot(nrhs, b)) {
      use_partial_pivoting();
      decide_checks(true);
    }
  }
  std::lock_guard lock(use_.counts);
  stats_.solve_seconds = watch.seconds();
}

template <class T> double Factor<T>::reciprocal_condition() const {
  if (A_.n == 0) return std::numeric_limits<double>::infinity();
  const std::shared_lock shared = held();
  const double inverse_norm =
      estimate_inverse_norm<T>(A_.n, [&](Trans trans, const T* b, T* x) { engine_solve(trans, 1, b, x); });
  const double rcond = 1 / (inverse_norm * norm_inf(A_, values_.data(), Trans::transpose));
  return std::isfinite(rcond) ? rcond : 0.0;
}

template <class T> FactorStats Factor<T>::stats() const {
  const std::shared_lock shared = held();
  std::lock_guard lock(use_.counts);
  return stats_;
}

template <class T> FactorSummary Factor<T>::summary() const {
  const std::shared_lock shared = held();
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
  const std::shared_lock shared = held();
  return values_;
}

template <class T> std::vector<idx> Factor<T>::row_perm() const {
  const std::shared_lock shared = held();
  return front_ ? front_->row_perm() : column_->row_perm();
}

template <class T> std::vector<idx> Factor<T>::col_perm() const {
  const std::shared_lock shared = held();
  return front_ ? front_->col_perm() : column_->col_perm();
}

template <class T> std::vector<T> Factor<T>::diagonal() const {
  const std::shared_lock shared = held();
  return front_ ? front_->diagonal() : column_->upper_diagonal();
}

template <class T> Matrix<T> Factor<T>::lower() const {
  const std::shared_lock shared = held();
  return front_ ? front_->lower() : column_->lower();
}

template <class T> Matrix<T> Factor<T>::upper() const {
  const std::shared_lock shared = held();
  return front_ ? front_->upper() : column_->upper();
}

template class Factor<float>;
template class Factor<double>;
template class Factor<std::complex<float>>;
template class Factor<std::complex<double>>;

}  // namespace gs
