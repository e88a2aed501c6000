#include "numeric/nearest_order.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "analysis/graph.hpp"
#include "matrix/sort_rows.hpp"

namespace gs {

std::vector<idx> nearest_order(PatternView L, const std::vector<idx>& wanted, const std::vector<char>& joined) {
  const idx n = L.n;
  const auto first_of = [&](idx k) { return k > 0 && joined[k - 1] ? k - 1 : k; };  // of its block
  const auto last_of = [&](idx k) { return joined[k] ? k + 1 : k; };
  std::vector<idx> waiting(n);  // by first pivot of a block: entries of its rows in columns that are not placed yet
  const auto for_rows_behind = [&](idx k, auto&& visit) {
    for (idx j = k; j <= last_of(k); j++)
      for (off p = L.ptr[j]; p < L.ptr[j + 1]; p++)
        if (const idx block = first_of(L.ind[p]); block != k) visit(block);
  };
  for (idx k = 0; k < n; k = last_of(k) + 1) for_rows_behind(k, [&](idx block) { waiting[block]++; });
  std::priority_queue<std::pair<idx, idx>, std::vector<std::pair<idx, idx>>, std::greater<>> ready;
  const auto add = [&](idx k) { ready.emplace(std::min(wanted[k], wanted[last_of(k)]), k); };
  for (idx k = 0; k < n; k = last_of(k) + 1)
    if (waiting[k] == 0) add(k);
  std::vector<idx> order;
  order.reserve(n);
  while (!ready.empty()) {
    const idx k = ready.top().second;
    ready.pop();
    for (idx j = k; j <= last_of(k); j++) order.push_back(j);
    for_rows_behind(k, [&](idx block) {
      if (--waiting[block] == 0) add(block);
    });
  }
  return order;
}

AnyMatrix in_order(const AnyMatrix& L, const std::vector<idx>& order) {
  const std::vector<off>& ptr = L.pattern.ptr;
  const RawVector<idx>& ind = L.pattern.ind;
  const idx n = L.pattern.n;
  const std::vector<idx> place = inverse_permutation(order.data(), n);
  return std::visit(
      [&]<class T>(const std::vector<T>& values) -> AnyMatrix {
        Matrix<T> permuted;
        permuted.pattern.n = n;
        permuted.pattern.ptr.assign((std::size_t)n + 1, 0);
        permuted.pattern.ind.reserve(ind.size()), permuted.values.reserve(values.size());
        for (idx k = 0; k < n; k++) {
          for (off p = ptr[order[k]]; p < ptr[order[k] + 1]; p++)
            permuted.pattern.ind.push_back(place[ind[p]]), permuted.values.push_back(values[p]);
          permuted.pattern.ptr[k + 1] = (off)permuted.pattern.ind.size();
        }
        sort_rows(permuted);
        return permuted;
      },
      L.values);
}

}  // namespace gs
