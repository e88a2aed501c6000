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

// Works a forest off from the leaves to the roots: visit(s) for every node, then give(s), which may write to what its
// parent keeps. Subtrees go in parallel, except that give runs for their roots in the order of the nodes, as everything
// does for the nodes above them; so results are those of one thread. The forest is in postorder.
template <class Visit, class Give> void up_the_forest(const std::vector<idx>& parent, Visit&& visit, Give&& give) {
  const idx n = (idx)parent.size(), few = std::max<idx>(200, n / 64);
  std::vector<idx> size(n, 1), tops;  // roots of the subtrees that are one task
  for (idx s = 0; s < n; s++)
    if (parent[s] >= 0) size[parent[s]] += size[s];
  for (idx s = 0; s < n; s++)
    if (size[s] <= few && (parent[s] < 0 || size[parent[s]] > few)) tops.push_back(s);
  std::atomic<std::size_t> next{0};
  run_team(n < 5000 ? 1 : num_threads(), [&](const Team&) {
    constexpr std::size_t several = 4;
    for (std::size_t k; (k = next.fetch_add(several, std::memory_order_relaxed)) < tops.size();)
      for (std::size_t t = k; t < std::min(k + several, tops.size()); t++)
        for (idx s = tops[t] - size[tops[t]] + 1; s <= tops[t]; s++) {
          visit(s);
          if (s < tops[t]) give(s);
        }
  });
  std::size_t t = 0;
  for (idx s = 0; s < n; s++) {
    if (t < tops.size() && s == tops[t] - size[tops[t]] + 1) s = tops[t++];
    else visit(s);
    give(s);
  }
}

// Runs body(begin, end) over ranges of 0 .. n - 1; `entries` as above.
template <class Body> void over_range(idx n, off entries, Body&& body) {
  run_team(team_size_for(4 * entries), [&](const Team& team) {
    const auto [begin, end] = slice(n, team);
    body(begin, end);
  });
}

}  // namespace gs::gpu
