#include <atomic>

#include "base/processors.hpp"
#include "simd/select.hpp"

namespace gs {
namespace {

#define GS_NUMBER(number, level) number,
constexpr int levels[] = {GS_LEVELS(GS_NUMBER)};  // ascending; an import requires the lowest
#undef GS_NUMBER
std::atomic<int> forced{-1};

bool can_run(int level) {
#if defined(__x86_64__)
  if (level == 4) return __builtin_cpu_supports("x86-64-v4");
  if (level == 3) return __builtin_cpu_supports("x86-64-v3");
#endif
  return true;
}

}  // namespace

bool simd_is_available() { return can_run(levels[0]); }

int simd_best_level() {
  int best = levels[0];
  for (const int level : levels)
    if (can_run(level)) best = level;
  return best;
}

int simd_level() {
  const int level = forced.load(std::memory_order_relaxed);
  return level < 0 ? simd_best_level() : level;
}

void set_simd_level(int number) {
  int found = -1;
  for (const int level : levels)
    if (level == number && can_run(level)) found = level;
  forced.store(found, std::memory_order_relaxed);
}

}  // namespace gs
