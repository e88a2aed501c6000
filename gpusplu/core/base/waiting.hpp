// Clocks, and waits of the threads of one job that do not block other threads.
#pragma once
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/operation.hpp"

namespace gs {

// Since some fixed moment [ns].
inline std::int64_t wall_clock() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// Executed between two reads of a word that another thread writes.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

constexpr int kSpins = 200;  // a few microseconds

// Yields the processor. If another thread takes it, the caller resumes only after milliseconds.
inline void offer_processor() { sched_yield(); }

// The same, in a loop: the awaited thread may have no processor and need this one.
inline void relax(int spin) { spin < kSpins ? relax() : offer_processor(); }

// The waits of the threads of a job.
struct WaitRecord {
  static constexpr std::int64_t kLong = 200'000;  // [ns]
  std::int64_t time_of_job = INT64_MAX;           // estimated time on one thread [ns]
  std::atomic<bool> long_wait{false};
  // A wait took as long as one thread needs for the job: some thread has no processor.
  std::atomic<bool> stopped{false};
  void add(std::int64_t waited) {
    if (waited > kLong) long_wait.store(true, std::memory_order_relaxed);
    if (waited > std::max(kLong, time_of_job)) stopped.store(true, std::memory_order_relaxed);
  }
};

// Waits until ready(): spins for a few microseconds and `spinning` nanoseconds, then yields the processor, and after a
// while sleeps; a thread that need not poll for stop requests sleeps in sleep(waited).
template <class Ready, class Sleep>
void wait_until(const Ready& ready, const Sleep& sleep, WaitRecord& record, std::int64_t spinning = 0) {
  constexpr std::int64_t kOffering = 300'000;  // [ns]
  for (int spin = 0; spin < kSpins; spin++) {
    if (ready()) return;
    relax();
  }
  const std::int64_t begin = wall_clock();
  std::int64_t waited = 0;
  while (!ready()) {
    if (waited < spinning) relax();
    else if (waited < kOffering) offer_processor();
    else detail::progress_point.caller ? nap(waited) : sleep(waited);
    waited = wall_clock() - begin;
  }
  record.add(waited);
}

}  // namespace gs
