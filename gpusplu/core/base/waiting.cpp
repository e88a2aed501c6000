#include "base/waiting.hpp"

#include <time.h>

namespace gs {

std::int64_t wall_clock() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

void offer_processor() { sched_yield(); }

}  // namespace gs
