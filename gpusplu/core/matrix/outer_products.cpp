#include "matrix/outer_products.hpp"

#include <algorithm>

#include "base/operation.hpp"
#include "base/scalars.hpp"

namespace gs {

template <class T> std::optional<std::vector<EntryChange<T>>> outer_products(PatternView A, const T* values,
                                                                             const Matrix<T>& C, int sign) {
  std::vector<EntryChange<T>> changes;  // `after` holds the summand
  Pace pace;
  for (idx r = 0; r < C.pattern.n; r++)
    for (off q = C.pattern.ptr[r]; q < C.pattern.ptr[r + 1]; q++) {
      pace.go_on(1 + C.pattern.ptr[r + 1] - C.pattern.ptr[r]);
      const idx column = C.pattern.ind[q];
      const T factor = real_t<T>(sign) * conj_if(C.values[q], true);
      const idx *begin = A.ind + A.ptr[column], *end = A.ind + A.ptr[column + 1];
      for (off p = C.pattern.ptr[r]; p < C.pattern.ptr[r + 1]; p++) {
        const idx* found = std::lower_bound(begin, end, C.pattern.ind[p]);
        if (found == end || *found != C.pattern.ind[p]) return std::nullopt;
        changes.push_back({found - A.ind, T(0), C.values[p] * factor});
      }
    }
  std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.place < b.place; });
  std::size_t count = 0;
  for (const EntryChange<T>& change : changes) {
    if (count > 0 && changes[count - 1].place == change.place) changes[count - 1].after += change.after;
    else changes[count++] = {change.place, values[change.place], values[change.place] + change.after};
  }
  changes.resize(count);
  return changes;
}

#define GS_INSTANTIATE(T) \
  template std::optional<std::vector<EntryChange<T>>> outer_products(PatternView, const T*, const Matrix<T>&, int);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
