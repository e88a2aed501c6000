// Work over parts of a plan, several threads where it is worth it.
#pragma once
#include <utility>

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

}  // namespace gs::gpu
