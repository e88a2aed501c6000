// The selected inverse of a Factor, certified.
//
// Solves are refined; entries of the inverse cannot be. But (A^-1 A)_jj = 1 = (A A^-1)_ii needs of A^-1 exactly the
// entries (j, i) for which A has (i, j), so that each row and column of A checks its own. Where that fails, or where
// pivots were perturbed, which it need not show, the entries come from a factor by columns of the same values with
// partial pivoting, and at last from solves.
#include <algorithm>
#include <cmath>
#include <complex>

#include "base/scalars.hpp"
#include "matrix/modulus.hpp"
#include "matrix/values.hpp"
#include "numeric/factor.hpp"

namespace gs {
namespace {

constexpr idx solved_at_once = 32;  // columns of the identity

// How far these entries of A^-1 are from making ones of the diagonals of A^-1 A and A A^-1, beside the terms.
template <class T> double identity_error(PatternView A, const T* values, const T* inverse) {
  using Wide = std::conditional_t<is_complex<T>, std::complex<double>, double>;
  std::vector<Wide> row_sum(A.n);
  std::vector<double> row_size(A.n, 1.0);
  double worst = 0;
  const auto judge = [&](Wide sum, double size) { worst = max_or_nan(worst, std::abs(Wide(1) - sum) / size); };
  for (idx j = 0; j < A.n; j++) {
    Wide sum(0);
    double size = 1;
    for (off k = A.ptr[j]; k < A.ptr[j + 1]; k++) {
      const Wide term = Wide(values[k]) * Wide(inverse[k]);
      const double magnitude = abs1(term);
      sum += term, size += magnitude;
      row_sum[A.ind[k]] += term, row_size[A.ind[k]] += magnitude;
    }
    judge(sum, size);
  }
  for (idx i = 0; i < A.n; i++) judge(row_sum[i], row_size[i]);
  return worst;
}

}  // namespace

template <class T> bool Factor<T>::certified_inverse(const T* inverse) const {
  return ladder_.is_inverse(identity_error(A_, values_.data(), inverse));
}

// By the factor that is held, where it can be trusted.
template <class T> bool Factor<T>::inverse_by_factor(T* inverse) const {
  if (!front_ && !column_->factored()) throw SingularError(-1);
  if (info_.n_perturbed > 0 || (!front_ && column_->is_wide())) return false;
  if (front_) front_->inverse_on_pattern(A_, inverse);
  else column_->inverse_on_pattern(inverse);
  return certified_inverse(inverse);
}

template <class T> bool Factor<T>::inverse_by_partial_pivoting(T* inverse) const {
  for (const Resort way : {Resort::scaled, Resort::unscaled}) {
    const Symbolic renewed = way == Resort::unscaled ? unscaled_analysis() : analysis_by_columns(true);
    if (renewed.structural_rank < renewed.n) return false;
    ColumnLU<T> column(renewed, A_);
    PivotOptions options;
    options.pivot_threshold = pivot_threshold_of(way, options_.pivot_threshold);
    if (column.factor(values_.data(), options).status != FactorInfo::ok) continue;
    column.inverse_on_pattern(inverse);
    if (certified_inverse(inverse)) return true;
  }
  return false;
}

// Row i of A asks for entries of column i of A^-1. False if a solve was not accurate.
template <class T> bool Factor<T>::inverse_by_solves(T* inverse) {
  std::vector<off> row_ptr(A_.n + 1);
  for (off k = 0; k < A_.nnz(); k++) row_ptr[A_.ind[k] + 1]++;
  for (idx i = 0; i < A_.n; i++) row_ptr[i + 1] += row_ptr[i];
  std::vector<std::pair<idx, off>> by_row(A_.nnz());  // column, entry
  std::vector<off> next(row_ptr.begin(), row_ptr.end() - 1);
  for (idx j = 0; j < A_.n; j++)
    for (off k = A_.ptr[j]; k < A_.ptr[j + 1]; k++) by_row[next[A_.ind[k]]++] = {j, k};
  bool good = true;
  std::vector<T> b((size_t)A_.n * solved_at_once), x(b.size());
  for (idx first = 0; first < A_.n; first += solved_at_once) {
    const idx nrhs = std::min(A_.n - first, solved_at_once);
    std::fill(b.begin(), b.end(), T(0));
    for (idx r = 0; r < nrhs; r++) b[(size_t)r * A_.n + first + r] = T(1);
    const double error = solve_by_ladder(Trans::none, nrhs, b.data(), x.data());
    good = good && !ladder_.must_warn(error, all_finite(x.data(), (off)A_.n * nrhs), true);
    for (idx r = 0; r < nrhs; r++)
      for (off p = row_ptr[first + r]; p < row_ptr[first + r + 1]; p++)
        inverse[by_row[p].second] = x[(size_t)r * A_.n + by_row[p].first];
  }
  return good;
}

template <class T> bool Factor<T>::inverse_on_pattern(T* inverse) {
  {
    const std::shared_lock shared = held();
    if (inverse_by_factor(inverse)) return true;
    if (ladder_.may_choose_pivots(0, true) && inverse_by_partial_pivoting(inverse)) return true;
  }
  const UseLock::Exclusive own = use_.exclusive();
  if (lost_) throw std::bad_alloc();
  return inverse_by_solves(inverse);
}

#define GS_INSTANTIATE(T)                                         \
  template bool Factor<T>::certified_inverse(const T*) const;     \
  template bool Factor<T>::inverse_by_factor(T*) const;           \
  template bool Factor<T>::inverse_by_partial_pivoting(T*) const; \
  template bool Factor<T>::inverse_by_solves(T*);                 \
  template bool Factor<T>::inverse_on_pattern(T*);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
