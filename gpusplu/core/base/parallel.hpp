// Loops that several threads share: the one way to hand out work, and ranges of it.
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>

#include "base/slices.hpp"
#include "base/threads.hpp"
#include "base/types.hpp"

namespace gs {

// Runs body(k, rank) for k = 0 .. count-1, whoever is free the next one, and nobody waits for a thread that the system
// has not run in time; throws what a body threw.
template <class F> void share_out(int threads, std::size_t count, F&& body) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  run_helpers((int)std::min<std::size_t>(threads, count), [&](const Team& team) {
    try {
      for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < count && !must_stop();)
        body(k, team.rank);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

constexpr off kLongRange = 2'000'000;  // entries, some milliseconds: how long nobody looks whether to stop

// Runs body(begin, end) over ranges of 0 .. n-1, on as many threads as `entries` matrix entries are worth. What body
// does must not depend on how they are cut.
template <class Int, class Body> void over_range(Int n, off entries, Body&& body) {
  const int threads = std::min(team_size_for(entries), num_threads());
  const int n_ranges = (int)std::max<off>(threads == 1 ? 1 : 4 * threads, entries / kLongRange);
  share_out(threads, n_ranges, [&](std::size_t k, int) {
    const auto [begin, end] = slice(n, Team{(int)k, n_ranges, nullptr});
    body(begin, end);
  });
}

}  // namespace gs
