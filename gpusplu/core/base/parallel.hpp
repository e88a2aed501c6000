// Loops that several threads share, and ranges of a loop.
#pragma once
#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/job_kind.hpp"
#include "base/threads.hpp"
#include "base/types.hpp"

namespace gs {

// Number of threads worth waking for `entries` matrix entries of a memory-bound pass, within the limit: below a few
// hundred microseconds of work a second thread costs more than it gains.
inline int threads_for(off entries) { return (int)std::min<off>({num_threads(), 1 + entries / 200000, 64}); }
// The same for passes with random access. They take several times as long per entry, but what short ones read is in
// the cache of the calling thread alone.
inline int threads_for_random(off entries) { return threads_for(entries) == 1 ? 1 : threads_for(3 * entries); }

template <class Int> struct Slice { Int begin, end; };
template <class Int> Slice<Int> slice(Int n, const Team& team) {
  return {(Int)((off)n * team.rank / team.size), (Int)((off)n * (team.rank + 1) / team.size)};
}

// Passes over the entries of a matrix. They share one kind, because one pass is too short for statistics of its own.
inline constinit JobKind of_passes;

// Compiled once, not for every body.
namespace detail {
void run_pass(int want, void (*body)(void*, const Team&), void* context);
void share_out(int threads, std::size_t count, void (*body)(void*, std::size_t, int), void* context, JobKind* kind);
}  // namespace detail

// Runs body(const Team&), which has no barrier, on up to want threads: the team is the threads that arrive soon, each
// with a slice, and no thread waits for the others. Most passes read everything for each slice, so each slice has one
// thread.
template <class F> void run_pass(int want, F&& body) {
  using Body = std::remove_reference_t<F>;
  detail::run_pass(
      want, [](void* p, const Team& team) { (*static_cast<Body*>(p))(team); }, (void*)&body);
}

// Runs body(k, rank) for k = 0 .. count-1; each free thread takes the next k, and none waits for a thread that the
// system has not started in time. Rethrows what a body threw. `kind`, if given, is the kind of job.
template <class F> void share_out(int threads, std::size_t count, F&& body, JobKind* kind = nullptr) {
  using Body = std::remove_reference_t<F>;
  detail::share_out(
      threads, count, [](void* p, std::size_t k, int rank) { (*static_cast<Body*>(p))(k, rank); }, (void*)&body, kind);
}

constexpr off kLongRange = 2'000'000;  // entries, some milliseconds: the longest time without a poll

// Runs body(begin, end) over ranges of 0 .. n-1, on as many threads as `entries` matrix entries are worth. The result
// of body must not depend on the ranges.
template <class Int, class Body> void over_range(Int n, off entries, Body&& body) {
  const int threads = threads_for(entries);
  const int n_ranges = (int)std::max<off>(threads == 1 ? 1 : 4 * threads, entries / kLongRange);
  const auto range = [&](std::size_t k, int) {
    const auto [begin, end] = slice(n, Team{(int)k, n_ranges});
    body(begin, end);
  };
  share_out(threads, n_ranges, range, &of_passes);
}

// The k of 0 .. n-1 for which holds(k), ascending.
template <class Holds> std::vector<idx> indices_where(idx n, Holds&& holds) {
  const int threads = threads_for(2 * (off)n), n_parts = threads == 1 ? 1 : 4 * threads;
  std::vector<std::vector<idx>> parts(n_parts);
  share_out(threads, n_parts, [&](std::size_t p, int) {
    const auto [begin, end] = slice(n, Team{(int)p, n_parts});
    for (idx k = begin; k < end; k++)
      if (holds(k)) parts[p].push_back(k);
  });
  if (n_parts == 1) return std::move(parts[0]);
  std::vector<std::size_t> first(n_parts + 1);
  for (int p = 0; p < n_parts; p++) first[p + 1] = first[p] + parts[p].size();
  std::vector<idx> all(first[n_parts]);
  share_out(threads, n_parts,
            [&](std::size_t p, int) { std::copy(parts[p].begin(), parts[p].end(), all.begin() + first[p]); });
  return all;
}

// memcpy by a few threads if the array is large: one thread copies 10 to 15 GB/s from one cache to another.
void copy_bytes(void* to, const void* from, std::size_t bytes);

}  // namespace gs
