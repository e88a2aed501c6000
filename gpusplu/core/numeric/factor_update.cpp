// Updates and downdates of a Cholesky factor. Rounding errors of successive updates accumulate, so solves with an
// updated factor are measured, and a new factorization replaces a factor that is no longer accurate.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "base/operation.hpp"
#include "base/stopwatch.hpp"
#include "matrix/modulus.hpp"
#include "numeric/factor.hpp"

namespace gs {
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

}  // namespace gs
