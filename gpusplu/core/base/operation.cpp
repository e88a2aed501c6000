#include "base/operation.hpp"

#include "base/must_stop.hpp"

#include <time.h>

#include <algorithm>

namespace gs {
namespace {

constexpr std::int64_t kMost = 150'000'000;  // longest time between polls [ns]
constexpr int kTimes = 20;  // times the last poll, until the next: other threads may hold the interpreter

// A clock with steps of some milliseconds that the system reads without the processor's clock, where available [ns].
std::int64_t coarse_clock() {
#ifdef CLOCK_MONOTONIC_COARSE
  constexpr clockid_t clock = CLOCK_MONOTONIC_COARSE;
#else
  constexpr clockid_t clock = CLOCK_MONOTONIC;
#endif
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

constinit thread_local detail::ProgressPoint detail::progress_point;

bool kernel_must_stop() noexcept { return must_stop(); }

void nap(std::int64_t waited) noexcept {
  must_stop();
  sleep_for(std::clamp<std::int64_t>(waited / 16, 20'000, 5'000'000));
}

void sleep_for(std::int64_t time) noexcept {
  const timespec given{0, (long)time};
  nanosleep(&given, nullptr);
}

void Operation::poll_if_due() {
  if (stopped()) return;
  const std::int64_t now = coarse_clock();
  if (now < due_) return;
  std::int64_t took = 0;
  if (due_ != 0) {  // otherwise the operation has just begun
    blas_.end();
    if (!poll()) stopped_.store(true, std::memory_order_relaxed);
    took = coarse_clock() - now;
  }
  due_ = now + took + std::clamp(kTimes * took, between_, kMost);
}

}  // namespace gs
