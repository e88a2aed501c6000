// Work over the fronts of a plan, several threads where it is worth it.
#pragma once
#include <algorithm>

#include "plan/fronts/plan.hpp"
#include "plan/team.hpp"

namespace gs::gpu {

// Runs body(begin, end) over ranges of fronts of about equal numbers of rows; `entries` is the total work. The result
// of body must not depend on the ranges.
template <class Body> void over_fronts(const Plan& plan, off entries, Body&& body) {
  const int threads = threads_for(entries);
  const idx n_ranges = threads == 1 ? 1 : 16 * threads;
  const auto cut = [&](idx k) {  // front that owns position n k / n_ranges
    if (k == n_ranges) return plan.nf;
    const idx position = (idx)((off)plan.n * k / n_ranges);
    return (idx)(std::lower_bound(plan.first.begin(), plan.first.end(), position) - plan.first.begin());
  };
  over_tasks(threads, n_ranges, [&](idx k) { body(cut(k), cut(k + 1)); });
}

}  // namespace gs::gpu
