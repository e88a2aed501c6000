// Work over the fronts of a plan, several threads where it is worth it.
#pragma once
#include <algorithm>

#include "base/slices.hpp"
#include "base/threads.hpp"
#include "plan/plan.hpp"

namespace gs::gpu {

// Runs body(begin, end) over ranges of fronts of about equal numbers of rows; `entries` is the work in all [matrix
// entries]. Ranges are handed out as threads come free; what body does must not depend on how they are cut.
template <class Body> void over_fronts(const Plan& plan, off entries, Body&& body) {
  const int threads = std::min(team_size_for(4 * entries), num_threads());
  const idx n_ranges = threads == 1 ? 1 : 16 * threads;
  const auto cut = [&](idx k) {  // front that owns position n k / n_ranges
    if (k == n_ranges) return plan.nf;
    const idx position = (idx)((off)plan.n * k / n_ranges);
    return (idx)(std::lower_bound(plan.first.begin(), plan.first.end(), position) - plan.first.begin());
  };
  if (n_ranges == 1) return body(0, plan.nf);
  std::atomic<idx> next{0};
  run_team(threads, [&](const Team&) {
    for (idx k; (k = next.fetch_add(1, std::memory_order_relaxed)) < n_ranges;) body(cut(k), cut(k + 1));
  });
}

}  // namespace gs::gpu
