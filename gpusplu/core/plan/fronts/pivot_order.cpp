#include "plan/fronts/pivot_order.hpp"

#include <algorithm>
#include <numeric>

#include "analysis/graph.hpp"
#include "shared/fronts.hpp"

namespace gs::gpu {

PivotOrder::PivotOrder(const Symbolic& symbolic) : columns(symbolic.n), partner(symbolic.n) {
  std::iota(columns.begin(), columns.end(), 0);
  partner = columns;
  const std::vector<idx> position = inverse_permutation(symbolic.col_perm.data(), symbolic.n);
  for (std::size_t k = 0; k < symbolic.pivot_order.size(); k++) columns[k] = position[symbolic.pivot_order[k]];
  for (std::size_t j = 0; j < symbolic.partner.size(); j++) partner[position[j]] = position[symbolic.partner[j]];
}

void align_pairs(const std::vector<idx>& partner, std::vector<idx>& columns) {
  std::vector<idx> sorted(columns), out;
  std::sort(sorted.begin(), sorted.end());
  const auto is_member = [&](idx j) { return std::binary_search(sorted.begin(), sorted.end(), j); };
  std::vector<char> single, done(columns.size(), 0);  // `done` by place in `sorted`
  const auto mark = [&](idx j) -> char& {
    return done[std::lower_bound(sorted.begin(), sorted.end(), j) - sorted.begin()];
  };
  for (const idx j : columns) {
    if (mark(j)) continue;
    mark(j) = 1;
    const idx other = partner[j];
    if (other == j || !is_member(other)) {
      out.push_back(j), single.push_back(1);
      continue;
    }
    mark(other) = 1;
    out.insert(out.end(), {j, other}), single.insert(single.end(), {0, 0});
    if (out.size() % PANEL != 1) continue;
    std::size_t last_single = out.size() - 3;
    while (!single[last_single]) last_single--;
    std::rotate(out.begin() + last_single, out.begin() + last_single + 1, out.end());
    std::rotate(single.begin() + last_single, single.begin() + last_single + 1, single.end());
  }
  columns = std::move(out);
}

}  // namespace gs::gpu
