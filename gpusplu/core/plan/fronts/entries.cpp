// The front of every entry of A, and the place in it.
#include "analysis/entry_places.hpp"

#include <limits>
#include <stdexcept>

#include "base/huge_pages.hpp"
#include "plan/fronts/plan.hpp"

namespace gs::gpu {

void place_entries(PatternView A, Plan& plan) {
  if (A.nnz() > std::numeric_limits<idx>::max()) throw std::length_error("the matrix has more than 2147483647 entries");
  EntryPlaces<std::uint16_t> places({.n = plan.n,
                                     .nf = plan.nf,
                                     .one_triangle = plan.one_triangle(),
                                     .row_perm = plan.row_perm.data(),
                                     .col_perm = plan.col_perm.data(),
                                     .first = plan.first.data(),
                                     .below_ptr = plan.below_ptr.data(),
                                     .below = plan.below.data()},
                                    A);
  plan.entry_ptr = places.count();
  const off total = plan.entry_ptr[plan.nf];
  plan.entry_source.resize(total), plan.entry_place.resize(total);
  plan.entry_scale.resize(plan.row_scale.empty() ? 0 : total);
  prefer_huge_pages(plan.entry_source), prefer_huge_pages(plan.entry_place), prefer_huge_pages(plan.entry_scale);
  places.write([&](off to, idx, off k, idx j, idx row, idx column) {
    plan.entry_source[to] = (idx)k;
    plan.entry_place[to] = (std::uint32_t)row | (std::uint32_t)column << 16;
    if (!plan.entry_scale.empty()) plan.entry_scale[to] = plan.row_scale[A.ind[k]] * plan.col_scale[plan.col_perm[j]];
  });
}

}  // namespace gs::gpu
