// Sorts the rows within compressed columns.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "base/operation.hpp"
#include "base/types.hpp"

namespace gs {

// Sorts the columns that are not in order, with their values.
template <class T> void sort_rows(Matrix<T>& A) {
  std::vector<std::pair<idx, off>> order;
  std::vector<T> sorted;
  auto& [pattern, values] = A;
  Pace pace;
  for (idx j = 0; j < pattern.n; j++) {
    const off begin = pattern.ptr[j], end = pattern.ptr[j + 1];
    pace.go_on(end - begin);
    if (std::is_sorted(pattern.ind.begin() + begin, pattern.ind.begin() + end)) continue;
    order.clear(), sorted.clear();
    for (off p = begin; p < end; p++) order.emplace_back(pattern.ind[p], p);
    std::sort(order.begin(), order.end());
    for (const auto& [row, p] : order) sorted.push_back(values[p]);
    for (off p = begin; p < end; p++) pattern.ind[p] = order[p - begin].first, values[p] = sorted[p - begin];
  }
}

}  // namespace gs
