// For every local row of every front, the places of the vector arena that it sums: children in plan order.
// Cost: O(structure), parallel over fronts.
#include <stdexcept>
#include <utility>

#include "base/huge_pages.hpp"
#include "plan/fronts/over_fronts.hpp"
#include "plan/fronts/plan.hpp"

namespace gs::gpu {

void list_gathers(Plan& plan) {
  if (plan.below.size() > 0x7fffffffu) throw std::length_error("more than 2147483647 rows below the pivots");
  std::vector<off> begin(plan.nf);  // of a front's sources
  off total = 0;
  for (idx f = 0; f < plan.nf; f++) {
    begin[f] = total;
    for (idx q = plan.child_ptr[f]; q < plan.child_ptr[f + 1]; q++) total += plan.height(plan.child[q]);
  }
  plan.gather_ptr.resize((std::size_t)plan.n + plan.below.size() + 1);
  plan.gather_ptr.back() = total;
  plan.gather_source.resize(total);
  prefer_huge_pages(plan.gather_source);
  over_fronts(plan, total, [&](idx first_front, idx last_front) {
    std::vector<off> next;
    for (idx f = first_front; f < last_front; f++) {
      next.assign(plan.rows[f], 0);
      const auto for_sources = [&](auto&& visit) {
        for (idx q = plan.child_ptr[f]; q < plan.child_ptr[f + 1]; q++)
          for (off p = plan.below_ptr[plan.child[q]]; p < plan.below_ptr[plan.child[q] + 1]; p++)
            visit(plan.place[p], p);
      };
      for_sources([&](idx row, off) { next[row]++; });
      off at = begin[f];
      off* ptr = plan.gather_ptr.data() + plan.below_ptr[f] + plan.first[f];
      for (idx i = 0; i < plan.rows[f]; i++) {
        ptr[i] = at;
        at += std::exchange(next[i], at);
      }
      for_sources([&](idx row, off p) { plan.gather_source[next[row]++] = (idx)p; });
    }
  });
}

}  // namespace gs::gpu
