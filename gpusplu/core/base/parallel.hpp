// Loops that several threads share: the one way to hand out work, and ranges of it.
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>

#include "base/slices.hpp"
#include "base/threads.hpp"
#include "base/types.hpp"

namespace gs {

// Of passes over the entries of a matrix: all of one kind, as each is over too soon to find out by itself.
inline constinit Crowding of_passes;

// Runs body(const Team&), which has no barrier, on up to want threads: the team is who has come before long, each with
// a slice, and nobody waits for the others. Most passes read everything for each slice, so a slice is one member's.
template <class F> void run_pass(int want, F&& body) {
  constexpr int kClosed = 1 << 20;         // whoever comes after that is late
  constexpr std::int64_t kSoon = 100'000;  // [ns] that a thread takes to wake up
  std::atomic<int> come{0}, size{0};
  const auto in_team = [&](const Team& team) {
    if (team.size == 1) return body(Team{});
    const int rank = come.fetch_add(1, std::memory_order_relaxed);
    if (team.rank == 0) {
      const std::int64_t from = wall_clock();
      while (come.load(std::memory_order_relaxed) < team.size && wall_clock() - from < kSoon) relax();
      size.store(come.exchange(kClosed, std::memory_order_relaxed), std::memory_order_release);
    } else if (rank >= kClosed) {
      return;
    }
    team.wait([&] { return size.load(std::memory_order_acquire) > 0; });
    body(Team{rank, size.load(std::memory_order_relaxed), nullptr, team.own});
  };
  run_helpers(want, in_team, &of_passes);
}

// Runs body(k, rank) for k = 0 .. count-1, whoever is free the next one, and nobody waits for a thread that the system
// has not run in time; throws what a body threw. `crowding`, if given, is that of this kind of job.
template <class F> void share_out(int threads, std::size_t count, F&& body, Crowding* crowding = nullptr) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  const auto work = [&](const Team& team) {
    try {
      for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < count && !must_stop();)
        body(k, team.rank);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  };
  run_helpers((int)std::min<std::size_t>(threads, count), work, crowding);
  if (error) std::rethrow_exception(error);
}

constexpr off kLongRange = 2'000'000;  // entries, some milliseconds: how long nobody looks whether to stop

// Runs body(begin, end) over ranges of 0 .. n-1, on as many threads as `entries` matrix entries are worth. What body
// does must not depend on how they are cut.
template <class Int, class Body> void over_range(Int n, off entries, Body&& body) {
  const int threads = std::min(team_size_for(entries), num_threads());
  const int n_ranges = (int)std::max<off>(threads == 1 ? 1 : 4 * threads, entries / kLongRange);
  const auto range = [&](std::size_t k, int) {
    const auto [begin, end] = slice(n, Team{(int)k, n_ranges, nullptr});
    body(begin, end);
  };
  share_out(threads, n_ranges, range, &of_passes);
}

}  // namespace gs
