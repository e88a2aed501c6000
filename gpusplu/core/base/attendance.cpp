#include "base/attendance.hpp"

#include <time.h>

#include "base/blas_threads.hpp"

namespace gs {
namespace {

std::int64_t nanoseconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

constexpr std::int64_t kLongWait = 200'000;           // [ns]
constexpr std::int64_t kEnoughToTell = 1'000'000;     // of a job, before it is judged [ns]
constexpr std::int64_t kBesideBlas = 10'000'000'000;  // that they are put aside, where they have run again [ns]
constexpr int kHold = 20;                             // times what was lost; so at most a twentieth is lost

}  // namespace

std::int64_t wall_clock() { return nanoseconds(CLOCK_MONOTONIC); }

Clocks Clocks::now() { return {wall_clock(), nanoseconds(CLOCK_THREAD_CPUTIME_ID)}; }

bool Job::crowded() const {
  const std::int64_t time = elapsed();
  return impatient() && time >= kEnoughToTell && worked_.load(std::memory_order_relaxed) < time / 4 * 3;
}

void Job::begin_again() {
  begin_ = wall_clock();
  worked_.store(0, std::memory_order_relaxed);
}

void Attendance::tell() {
  const std::int64_t now = Clocks::now().processor;
  job_.tell(now - told_ - waited_);
  told_ = now, waited_ = 0;
}

void Attendance::waited_since(const Clocks& from) {
  const Clocks now = Clocks::now();
  waited_ += now.processor - from.processor;
  if (now.wall - from.wall > kLongWait) job_.wait_was_long();
}

int Crowding::members(int want) const {
  const std::int64_t until = until_.load(std::memory_order_relaxed);
  return until != 0 && want > 1 && wall_clock() < until ? 1 : want;
}

void Crowding::found(std::int64_t lost) { until_.store(wall_clock() + kHold * lost, std::memory_order_relaxed); }

bool Crowding::is_beside_blas() {
  const std::int64_t until = beside_until_.load(std::memory_order_relaxed);
  if (until == 0 || wall_clock() >= until) return false;
  const std::int64_t time = time_of_blas();
  if (time_of_blas_.exchange(time, std::memory_order_relaxed) == time) return false;
  found_beside_blas();
  return true;
}

void Crowding::found_beside_blas() { beside_until_.store(wall_clock() + kBesideBlas, std::memory_order_relaxed); }

}  // namespace gs
