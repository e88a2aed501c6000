// Clocks, and how threads of one job wait for each other without being in anybody's way.
#pragma once
#include <sched.h>

#include <atomic>
#include <cstdint>

#include "base/operation.hpp"

namespace gs {

std::int64_t wall_clock();  // since some fixed moment [ns]

// Between two reads of a word that another thread writes.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

constexpr int kSpins = 200;  // a few microseconds

// Offers the processor to other threads. Where one takes it, this thread gets it back after milliseconds only.
void offer_processor();

// The same, in a loop: the thread that is waited for may have no processor, and others may need ours.
inline void relax(int spin) { spin < kSpins ? relax() : offer_processor(); }

// What the threads of a job note while they wait.
struct WaitRecord {
  static constexpr std::int64_t kLong = 200'000;  // [ns]
  std::atomic<bool> long_wait{false};
  void add(std::int64_t waited) {
    if (waited > kLong) long_wait.store(true, std::memory_order_relaxed);
  }
};

// Until ready(): spins, then offers the processor to other threads, and after a while sleeps, by sleep(waited) where
// the thread need not look whether to stop.
template <class Ready, class Sleep> void wait_until(const Ready& ready, const Sleep& sleep, WaitRecord& record) {
  constexpr std::int64_t kOffering = 300'000;  // [ns]
  for (int spin = 0; spin < kSpins; spin++) {
    if (ready()) return;
    relax();
  }
  const std::int64_t begin = wall_clock();
  std::int64_t waited = 0;
  while (!ready()) {
    if (waited < kOffering) offer_processor();
    else detail::progress_point.caller ? nap(waited) : sleep(waited);
    waited = wall_clock() - begin;
  }
  record.add(waited);
}

}  // namespace gs
