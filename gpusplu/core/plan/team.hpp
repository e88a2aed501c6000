// Work over parts of a plan, several threads where it is worth it.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "base/parallel.hpp"

namespace gs::gpu {

// Runs body(k) for k < n.
template <class Body> void over_tasks(int threads, idx n, Body&& body) {
  share_out(threads, n, [&](std::size_t k, int) { body((idx)k); });
}

// Threads for this many visits of matrix entries, which take some 10 ns each here.
inline int threads_for(off entries) { return gs::threads_for(4 * entries); }

template <class Body> void over_range(idx n, off entries, Body&& body) {
  gs::over_range(n, 4 * entries, std::forward<Body>(body));
}

// Processes a forest from the leaves to the roots: visit(s) for every node, then give(s), which may write to its
// parent's data. Subtrees run in parallel, except that give runs for their roots in the order of the nodes, as do both
// calls for the nodes above them; so results are those of one thread. The forest is in postorder.
template <class Visit, class Give> void up_the_forest(const std::vector<idx>& parent, Visit&& visit, Give&& give) {
  const idx n = (idx)parent.size(), few = std::max<idx>(200, n / 64);
  std::vector<idx> size(n, 1), tops;  // roots of the subtrees that are one task
  for (idx s = 0; s < n; s++)
    if (parent[s] >= 0) size[parent[s]] += size[s];
  for (idx s = 0; s < n; s++)
    if (size[s] <= few && (parent[s] < 0 || size[parent[s]] > few)) tops.push_back(s);
  constexpr idx several = 4;
  const idx n_tasks = ((idx)tops.size() + several - 1) / several;
  over_tasks(n < 4000 ? 1 : num_threads(), n_tasks, [&](idx k) {
    for (std::size_t t = k * several; t < std::min<std::size_t>((k + 1) * several, tops.size()); t++)
      for (idx s = tops[t] - size[tops[t]] + 1; s <= tops[t]; s++) {
        visit(s);
        if (s < tops[t]) give(s);
      }
  });
  std::size_t t = 0;
  Pace pace;
  for (idx s = 0; s < n; s++, pace.go_on(64)) {
    if (t < tops.size() && s == tops[t] - size[tops[t]] + 1) s = tops[t++];
    else visit(s);
    give(s);
  }
}

}  // namespace gs::gpu
