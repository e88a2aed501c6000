// Loops that several threads share: the one way to hand out work, and ranges of it.
#pragma once
#include <algorithm>
#include <type_traits>

#include "base/job_kind.hpp"
#include "base/slices.hpp"
#include "base/threads.hpp"
#include "base/types.hpp"

namespace gs {

// Of passes over the entries of a matrix: all of one kind, as each is over too soon to find out by itself.
inline constinit JobKind of_passes;

// What is below is compiled once, not for every body.
namespace detail {
void run_pass(int want, void (*body)(void*, const Team&), void* context);
void share_out(int threads, std::size_t count, void (*body)(void*, std::size_t, int), void* context, JobKind* kind);
}  // namespace detail

// Runs body(const Team&), which has no barrier, on up to want threads: the team is who has come before long, each with
// a slice, and nobody waits for the others. Most passes read everything for each slice, so a slice is one member's.
template <class F> void run_pass(int want, F&& body) {
  using Body = std::remove_reference_t<F>;
  detail::run_pass(
      want, [](void* p, const Team& team) { (*static_cast<Body*>(p))(team); }, (void*)&body);
}

// Runs body(k, rank) for k = 0 .. count-1, whoever is free the next one, and nobody waits for a thread that the system
// has not run in time; throws what a body threw. `kind`, if given, is that of this kind of job.
template <class F> void share_out(int threads, std::size_t count, F&& body, JobKind* kind = nullptr) {
  using Body = std::remove_reference_t<F>;
  detail::share_out(
      threads, count, [](void* p, std::size_t k, int rank) { (*static_cast<Body*>(p))(k, rank); }, (void*)&body, kind);
}

constexpr off kLongRange = 2'000'000;  // entries, some milliseconds: how long nobody looks whether to stop

// Runs body(begin, end) over ranges of 0 .. n-1, on as many threads as `entries` matrix entries are worth. What body
// does must not depend on how they are cut.
template <class Int, class Body> void over_range(Int n, off entries, Body&& body) {
  const int threads = threads_for(entries);
  const int n_ranges = (int)std::max<off>(threads == 1 ? 1 : 4 * threads, entries / kLongRange);
  const auto range = [&](std::size_t k, int) {
    const auto [begin, end] = slice(n, Team{(int)k, n_ranges});
    body(begin, end);
  };
  share_out(threads, n_ranges, range, &of_passes);
}

}  // namespace gs
