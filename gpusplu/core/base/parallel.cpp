#include "base/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>

namespace gs {
namespace detail {

void run_pass(int want, void (*body)(void*, const Team&), void* context) {
  constexpr int kClosed = 1 << 20;         // threads that arrive after that do not take part
  constexpr std::int64_t kSoon = 100'000;  // [ns] that a thread takes to wake up
  std::atomic<int> come{0}, size{0};
  const auto in_team = [&](const Team& team) {
    if (team.size == 1) return body(context, Team{});
    const int rank = come.fetch_add(1, std::memory_order_relaxed);
    if (team.rank == 0) {
      const std::int64_t from = wall_clock();
      while (come.load(std::memory_order_relaxed) < team.size && wall_clock() - from < kSoon) relax();
      size.store(come.exchange(kClosed, std::memory_order_relaxed), std::memory_order_release);
    } else if (rank >= kClosed) {
      return;
    }
    team.wait([&] { return size.load(std::memory_order_acquire) > 0; });
    body(context, Team{rank, size.load(std::memory_order_relaxed), team.waits});
  };
  run_helpers(want, in_team, &of_passes);
}

void share_out(int threads, std::size_t count, void (*body)(void*, std::size_t, int), void* context, JobKind* kind) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  const auto work = [&](const Team& team) {
    try {
      for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < count && !must_stop();)
        body(context, k, team.rank);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  };
  run_helpers((int)std::min<std::size_t>(threads, count), work, kind);
  if (error) std::rethrow_exception(error);
}

}  // namespace detail

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  over_range((off)bytes, (off)bytes, [&](off begin, off end) {
    std::memcpy((char*)to + begin, (const char*)from + begin, (std::size_t)(end - begin));
  });
}

}  // namespace gs
