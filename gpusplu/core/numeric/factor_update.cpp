// Updates and downdates of a Cholesky factor. Rounding errors of successive updates accumulate, so solves with an
// updated factor are measured, and a new factorization replaces a factor that is no longer accurate.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/operation.hpp"
#include "base/scalars.hpp"
#include "base/stopwatch.hpp"
#include "certify/accuracy.hpp"
#include "matrix/modulus.hpp"
#include "matrix/outer_products.hpp"
#include "numeric/factor.hpp"

namespace gs {

template <class T> bool Factor<T>::update(const Matrix<T>& C, int sign) {
  const UseLock::Exclusive own = use_.exclusive();
  recover();
  const Stopwatch watch;
  const auto changes = outer_products(A_, values_.data(), C, sign);
  if (!changes) return false;
  double largest = largest_;
  for (const EntryChange<T>& change : *changes) largest = max_or_nan(largest, modulus(change.after));
  if (!std::isfinite(largest)) throw std::overflow_error("an entry of the changed matrix is out of range");
  backup_.reserve(values_.size());  // nothing below may run out of memory while the factor is half changed
  const auto apply = [&](RawVector<T>& values) {
    for (const EntryChange<T>& change : *changes) values[change.place] = change.after;
  };
  const auto changes_columns = [&] {
    try {
      return front_->update_pays(C) && front_->update(C, sign);
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
    backup_ = values_;
    apply(backup_);
    factor_backup(largest);
  }
  stats_.n_updated++;
  stats_.refactor_seconds = watch.seconds();
  return true;
}

// Factors the current values while the old factor is kept. Returns whether the new factor replaced it.
template <class T> bool Factor<T>::refactor_updated() {
  auto front = std::make_shared<FrontFactor<T>>(symbolic_, A_, options_.hermitian);
  const FactorInfo info = front->factor(values_.data(), {});
  if (info.status != FactorInfo::ok) return false;
  front_ = std::move(front), info_ = info;
  updated_ = false;
  return true;
}

#define GS_INSTANTIATE(T)                                 \
  template bool Factor<T>::update(const Matrix<T>&, int); \
  template bool Factor<T>::refactor_updated();
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
